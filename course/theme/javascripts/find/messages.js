// Error messages: what of a pasted text is one, and which sections explain it.

const DICTIONARY_OF_LIBRARY = /^lookup\/errors-(equinox|flax|nnx|libraries|orbax|samplers|solvers)\//;

// What Python says of any code, with JAX or without. A section that has the words of such a message explains it only where it
// shows it.
export const OF_PYTHON =
  /^(?:\w+Error: )?(KeyError$|(?:list|tuple|string) index out of range|name '\w+' is not defined|'(?:bool|dict|float|int|list|module|NoneType|set|str|tuple)' object (?:is not|has no attribute) [\w']+)/;
// A KeyError is no more than a key. A section explains it that has "KeyError in samples[" among its wordings, if the traceback
// shows that; or else one that has the whole message.
const KEY = /KeyError: ["']?\S+$/;
export const explaining = (hits, phrase, query) => {
  const find = (fits) => hits.find(({ section: { title, wordings } }) => [title, ...wordings].some(fits));
  if (phrase !== "KeyError") {
    return hits.find(({ section: { title, text, wordings } }) =>
      [title, text, ...wordings].some((text) => text.includes(phrase))
    );
  }
  const [key] = query.trim().match(KEY) ?? [];
  return find((wording) => {
    const [, place] = wording.match(/^KeyError in (?:jax\.)?(.+)/) ?? [];
    return place && query.includes(place);
  }) ?? find((wording) => wording === key);
};

const RAISED =
  /(?:^|[\s(])((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|Iteration))(?=:|\s*$|\s*\n)/g;

// What a pasted traceback or message says, without the frames and paths of the machine it is from; "" if it is none.
export const messageOf = (query) => {
  if (/^[\w.]+$/.test(query)) return "";
  query = query.replace(/(The error was:)\s+Traceback .*$/s, "$1"); // of the hash of a static argument
  // An assertion without a message has only its line.
  if (/\bAssertionError\s*$/.test(query)) return [...query.matchAll(/^\s*(assert .*)$/gm)].at(-1)?.[1] ?? query;
  const raised = [...query.matchAll(RAISED)];
  if (!raised.length && OF_PYTHON.test(query)) return query;
  if (!raised.length && !/Traceback \(most recent call last\)|File ".*", line \d+/.test(query)) return "";
  return query
    .slice((raised.find(({ index }) => index >= query.lastIndexOf('File "')) ?? raised.at(-1))?.index ?? 0)
    .replace(/-{5,}.*$/s, "")
    .replace(/For simplicity, JAX has removed its internal frames.*$/s, "")
    .replace(/See https?:\S+|\(https?:\S+\)/g, "")
    .replace(/\S*\/\S+\.py(:\d+)*/g, "")
    .replace(/(?<=[\s'"])(?:\/[\w.-]+){2,}/g, "")
    .replace(KEY, "KeyError") // the key is the reader's own, and so is the name of a function
    .replace(/\S+(?<!__)\(\) (?=missing \d+ required positional)/, "")
    .trim();
};

// The name that an error misses, as its row under Upgrading has it.
const MISSING = [
  [/module '([\w.]+)' has no attribute '(\w+)'/, "$1.$2"],
  [/cannot import name '(\w+)' from '([\w.]+)'/, "$2.$1"],
  [/No module named '([\w.]+)'/, "$1"],
  [/Array\w*' object has no attribute '(\w+)'/, "arr.$1"],
  [/(?:Error|Warning): ((?:jax|arr)(?:\.\w+)+) (?:is|was|has been) (?:deprecated|removed)/, "$1"],
];

export const missing = (message) => {
  for (const [form, name] of MISSING) {
    const found = message.match(form);
    if (found) return name.replace(/\$(\d)/g, (_, group) => found[group]);
  }
  return "";
};

const OF_JAXLIB = /\bjaxlib(?:\.\w+)*\.(?=\w)/g; // in which module a class is, which changes

// What JAX prints, in the form in which a row under Upgrading shows it: of its first line the first 119 characters, the class
// without its module, and nothing that depends on the machine or on the release of jaxlib.
const printed = (message) =>
  message
    .split("\n")[0]
    .replace(/^(?:\w+\.)+(?=\w+:)/, "")
    .replace(OF_JAXLIB, "")
    .replace(/\s+/g, " ")
    .replace(/^(\w+: )?(.{119}).*$/, "$1$2")
    .trim();

const UNEXPECTED = /(\w+)\(\) got an unexpected keyword argument '(\w+)'/;
const ROW = /^lookup\/then-and-now\/#old-/;

// The row of an old name that shows a message, or whose title has the keyword that a function does not take any more.
export const rowOf = (message, sections) => {
  const line = printed(message);
  const [, called, keyword] = message.match(UNEXPECTED) ?? [];
  const takes = keyword && new RegExp(`\\b${called}\\((?:\\w+=\\w*,)*${keyword}=`);
  const shows = (row) => (row.shows ??= row.text.replace(OF_JAXLIB, "")).includes(line);
  const rows = sections.filter(({ location }) => ROW.test(location));
  return rows.find((row) => line.split(" ").length > 2 && shows(row)) ?? rows.find(({ title }) => takes?.test(title));
};

// What Python says of a call that does not fit a function. A section on a library explains it only for a function that it
// names; for what a class of the reader's own takes, it names the class Net. It explains nothing that JAX has not.
const OF_CALL =
  /(\S+\(\)) (?:missing \d+ required (keyword-only arguments?: '\w+')?|got an unexpected keyword|takes \d+ positional)/;
export const ofCall = ({ location, text, wordings }, query) => {
  if (!DICTIONARY_OF_LIBRARY.test(location)) return true;
  if (/module 'jax\b/.test(query)) return false;
  const [, called, keyword] = query.match(OF_CALL) ?? [];
  if (!called) return true;
  const own = called.replace(/^\w+(?=\.__\w+__\(\)$)/, "Net");
  return [text, ...wordings].some((text) =>
    (text.includes(called) || text.includes(own)) && (!keyword || text.includes(keyword))
  );
};
