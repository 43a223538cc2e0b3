// What the record says of a name (names.json): in which releases it is there.

// Why a release lacks a name, as the beginning of a sentence; "" if the release has it.
export const lacks = ({ since, gone, earlier = [] }, release, releases) => {
  const place = (each) => releases.indexOf(each || releases[0]);
  const at = place(release);
  const spans = [...earlier, [since, gone]];
  if (spans.some(([from, to]) => place(from) <= at && (!to || at < place(to)))) return "";
  if (at < place(spans[0][0])) return "Not yet in";
  return at < place(since) ? "Not in" : "No longer in";
};

// When a name came, changed and went, in words.
export const describe = ({ since, changed, deprecated, gone, earlier = [] }, releases) => {
  const first = (from) => (from && from !== releases[0] ? `since ${from}` : `since ${releases[0]} or before`);
  const facts = earlier.flatMap(([from, to], at) => [at ? `again since ${from}` : first(from), `gone in ${to}`]);
  facts.push(facts.length ? `again since ${since}` : first(since));
  if (changed) facts.push(`parameters changed in ${changed}`);
  if (deprecated) facts.push(`deprecated in ${deprecated}`);
  if (gone) facts.push(`gone in ${gone}`);
  else if (deprecated) facts.push(`still there in ${releases.at(-1)}`);
  return facts.join(", ");
};
