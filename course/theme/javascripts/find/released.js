// Public names of any release as results of the search.
import { describe } from "../releases.js";

let record;
const recorded = async () => {
  try {
    const { releases, names } = await (await fetch(new URL("../../names.json", import.meta.url))).json();
    return { releases, names, spelled: new Map(Object.keys(names).map((name) => [name.toLowerCase(), name])) };
  } catch {
    record = undefined; // without it the rest of the search works, and the next name tries again
  }
};

// A public name of any release as a section: the list of names, filtered by it, with its history for a text. Undefined for
// a module that is still there, of which names say little, and for an error over what has always been there.
export const released = async (lower, message) => {
  if (!/^jax(\.\w+)+$/.test(lower)) return;
  const known = await (record ??= recorded());
  const name = known?.spelled.get(lower);
  if (!name) return;
  const { says = "", ...facts } = known.names[name];
  const isModule = [...known.spelled.keys()].some((other) => other.startsWith(`${lower}.`));
  if (!facts.gone && (isModule || (message && !facts.since))) return;
  const page = "lookup/names/";
  return {
    page,
    location: `${page}?filter=${name}`,
    title: name,
    prose: `jax: ${describe(facts, known.releases)}. ${says}`.trim(),
    kind: "name",
  };
};
