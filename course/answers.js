// Answers queries by a site's search, whose script is the argument: a query a line in, its results a line out, as JSON.
const { find } = await import(Deno.args[0]);

const own = ([page, ...sections]) => (page.score || !sections.length ? [page, ...sections] : sections);

const answer = async (query) => {
  try {
    const { items, note } = await find(query);
    return { note, hits: items.flatMap(own).map(({ terms: _, ...hit }) => hit) };
  } catch (error) {
    return { error: `${error}` };
  }
};

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop();
  for (const line of lines) console.log(JSON.stringify(await answer(JSON.parse(line))));
}
