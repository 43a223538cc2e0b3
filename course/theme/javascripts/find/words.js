// Texts as terms: words by their stems, one for all that people use for one another, and names with their parts.
import { stemmer } from "../vendor/stemmer.js";

const COMMON = new Set(
  "a an the is are do does did i my me we you your to of it its this that be am was so by".split(" "),
);
export const spelling = new Map(); // of each term: how it was first written

// Words that people use for one another. The first of each line stands for all.
const SAME = new Map(
  `slow slower slowly
  fast faster quick quicker quickly speed accelerate
  large larger big bigger huge
  largest biggest highest
  small smaller tiny
  several many multiple
  same identical equal
  every each
  again anew repeatedly
  gpu card
  machine computer pc laptop
  image picture photo
  parameter weight
  model network net
  array tensor vector
  train learn
  number value
  save store
  run execute
  start begin
  change vary
  choose pick select
  display print
  raise throw
  hang freeze stuck wait
  error exception
  warning complaint`.split("\n").flatMap((line) => {
    const [one, ...others] = line.trim().split(" ").map((word) => stemmer(word));
    return others.map((other) => [other, one]);
  }),
);

const toTerm = (word) => {
  const lower = word.toLowerCase();
  const stem = /^[a-z]{4,}$/.test(lower) ? stemmer(lower) : lower;
  const found = SAME.get(stem) ?? stem;
  if (!spelling.has(found)) spelling.set(found, lower);
  return found;
};

// The terms of a word: its stem; those of a name, such as jax.lax.fori_loop, are the name in full and the stems of its parts.
const termsOf = (word) => {
  if (COMMON.has(word.toLowerCase())) return [];
  const parts = word.split(/[._]+|(?<=[a-z\d])(?=[A-Z])/).filter(Boolean);
  const names = parts.length > 1 ? [word, ...word.split(".").slice(1).filter((part) => part.includes("_"))] : [];
  return [
    ...names.map((name) => noted(name.toLowerCase())),
    ...parts.filter((part) => !COMMON.has(part.toLowerCase())).map(toTerm),
  ];
};

const known = new Map(); // the terms of each word so far: most words come hundreds of times

export const terms = (text) => {
  const found = [];
  for (const word of text.match(/[\p{L}_]\w*(?:\.[\p{L}_]\w*)*|\d+(?:\.\d+)+|\d{2,}/gu) ?? []) {
    let its = known.get(word);
    if (!its) known.set(word, its = termsOf(word));
    for (const term of its) found.push(term);
  }
  return found;
};

// Forget all terms: which there are rests on the sections that are read.
export const forgetTerms = () => {
  for (const map of [spelling, known]) map.clear();
};

const noted = (name) => (spelling.has(name) || spelling.set(name, name), name);

// What people say who do not know the field's word yet. Each is looked up as that word.
const LAY = [
  [/\b(graphics?|video) cards?\b/gi, "gpu"],
  [/\b(mac ?book|macos|apple silicon)\b/gi, "mac"],
  [/\bradeon\b/gi, "amd gpu"],
  [/\bnot a number\b/gi, "nan"],
  [/\b(64|32|16)[- ]?bits?\b/gi, "float$1"],
  [/\bdouble precision\b/gi, "float64"],
  [/\bhalf precision\b/gi, "bfloat16"],
  [/\b(ages|forever)\b/gi, "long slow"],
  [/\b(video|graphics?) (memory|ram)\b/gi, "gpu memory"],
  [/\bvram\b/gi, "gpu memory"],
  [/\bram\b/gi, "memory"],
  [/\boom\b/gi, "out of memory"],
  [/\blr\b/gi, "learning rate"],
  [/\bslopes?\b/gi, "derivative"],
];
// What says "not" in a word, with its apostrophe or without. "Not the same" is what others call a change: word by word, the
// answer to its opposite would be as near.
const NOT = /\b(?:(?:do|does|did|is|are|was|were|has|have|had|ca|wo|could|would|should)n['’]?t)\b/gi;
const NOT_SAME = /\bnot (?:(?:the|always|exactly) )*(?:same|identical|equal)\b/gi;
export const withoutContractions = (text) => text.replace(NOT, "not").replace(NOT_SAME, "change");

export const replaceLayTerms = (query) => LAY.reduce((text, [lay, word]) => text.replace(lay, word), query);
