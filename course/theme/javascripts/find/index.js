// An index of sections by the terms of their fields, ranked by BM25+.

export const BOOST = { title: 2.5, wordings: 3.5, text: 1, page: 1 }; // how much a term in a field of a section counts
export const BOOST_OF_MESSAGE = { ...BOOST, wordings: 2.5 }; // a message has an entry, whose text it is
const LONG = { title: 0.7, wordings: 0.4, text: 0.7, page: 0.7 }; // and how much less it counts in a long one

export class Index {
  #lists = new Map(); // for a term, of each field: the sections that hold it, each followed by how often
  #lengths = []; // how many terms each section has, of each field
  #means = [];

  // Add the next section: of each field of BOOST, the terms.
  add(fields) {
    const id = this.#lengths.length;
    const lengths = fields.map(() => 0);
    this.#lengths.push(lengths);
    fields.forEach((terms, field) => {
      for (const term of terms) {
        let lists = this.#lists.get(term);
        if (!lists) this.#lists.set(term, lists = fields.map(() => []));
        const list = lists[field];
        if (list[list.length - 2] === id) list[list.length - 1]++;
        else {
          list.push(id, 1);
          lengths[field]++;
        }
      }
    });
  }

  // The sections that hold one of the terms, or a term that begins with the one that is still being typed.
  search(terms, typing, boosts) {
    this.#means = Object.keys(BOOST).map((_, field) =>
      this.#lengths.reduce((sum, lengths) => sum + lengths[field], 0) / this.#lengths.length
    );
    const found = new Map();
    for (const term of terms) {
      const scores = new Map();
      for (const [form, weight] of this.#forms(term, term === typing)) {
        (this.#lists.get(form) ?? []).forEach((list, field) =>
          this.#score(list, weight * Object.values(boosts)[field], field, scores)
        );
      }
      for (const [id, score] of scores) {
        const hit = found.get(id);
        if (!hit) found.set(id, { id, score, matched: [term] });
        else {
          hit.score += score;
          hit.matched.push(term);
        }
      }
    }
    const hits = [...found.values()];
    for (const hit of hits) hit.score *= hit.matched.length;
    return hits.sort((a, b) => b.score - a.score);
  }

  // A term, or what it may become, each with what it counts.
  #forms(term, typing) {
    if (!typing) return [[term, 1]];
    return [...this.#lists.keys()]
      .filter((other) => other.startsWith(term))
      .map((other) => [other, 0.375 * other.length / (other.length + 0.3 * (other.length - term.length))]);
  }

  #score(list, boost, field, scores) {
    const [k, b, d] = [1.2, Object.values(LONG)[field], 1];
    const count = list.length / 2;
    const rare = Math.log(1 + (this.#lengths.length - count + 0.5) / (count + 0.5));
    for (let at = 0; at < list.length; at += 2) {
      const [id, often] = [list[at], list[at + 1]];
      const long = this.#lengths[id][field] / this.#means[field];
      const score = rare * (d + often * (k + 1) / (often + k * (1 - b + b * long)));
      scores.set(id, (scores.get(id) ?? 0) + boost * score);
    }
  }
}
