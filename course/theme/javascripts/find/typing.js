// Words that are misspelled, unknown, or not typed to their end.
import { spelling, terms } from "./words.js";

// By how many letters inserted, left out, changed or swapped with the next one two words differ.
const distance = (one, other) => {
  let [before, last] = [[], Array.from({ length: other.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= one.length; i++) {
    const now = [i];
    for (let j = 1; j <= other.length; j++) {
      now[j] = Math.min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (one[i - 1] !== other[j - 1]));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        now[j] = Math.min(now[j], before[j - 2] + 1);
      }
    }
    [before, last] = [last, now];
  }
  return last[other.length];
};

// The term of the site that an unknown one was most probably meant to be; undefined if none is near.
const nearest = (unknown, words) => {
  const most = unknown.length > 7 ? 2 : 1;
  let best, least = most + 1;
  for (const [known, count] of words) {
    if (Math.abs(known.length - unknown.length) > most || !/[a-z]/.test(known)) continue;
    const apart = distance(unknown, known);
    if (apart < least || (apart === least && count > words.get(best))) [best, least] = [known, apart];
  }
  return best;
};

// Whether no section has a word, nor one that it may become when it is typed to its end.
export const isUnknown = (word, { frequency, vocabulary }) => {
  const found = terms(word);
  return /^\p{L}{4,}\W?$/u.test(word) && found.length > 0 && !found.some((term) => frequency.has(term)) &&
    ![...vocabulary.keys()].some((known) => known.startsWith(word.toLowerCase()));
};

// A query with each word that the site doesn't know replaced by the one it was probably meant to be.
export const corrected = (text, { frequency, vocabulary }) =>
  text.replace(/[\w.]{4,}/g, (word) => {
    const typed = word.toLowerCase();
    if (!terms(word).some((term) => !frequency.has(term)) || vocabulary.has(typed) || /^[\d.]+$/.test(word)) {
      return word;
    }
    for (const known of vocabulary.keys()) if (known.startsWith(typed)) return word; // not typed to its end
    return nearest(typed, vocabulary) ?? word;
  });

// The last word that is typed, completed for the theme's suggestion in the field: to the end of a word that begins with it, or
// of one part of a name; to nothing where the word itself is met more often.
export const completed = (text, { frequency }) => {
  const last = text.split(/[\s-]+/).at(-1);
  if (last.length < 3) return [];
  let [best, most] = ["", frequency.get(terms(last)[0]) ?? 0];
  for (const [term, count] of frequency) {
    const word = spelling.get(term) ?? term;
    if (count > most && word.startsWith(last) && word.length > last.length) [best, most] = [word, count];
  }
  const end = best.indexOf(".", last.length);
  if (end < 0) return best ? [best] : [];
  return end === last.length ? [] : [best.slice(0, end)];
};
