// Exercises, which a site may have: data-live-exercises at the root of its pages then names the module that knows them.
//   stub(source): the name of the exercise whose stub this code is, if it is one.
//   cleared(name): the code that takes this name out of the kernel, before the code of a stub's block runs.
//   examination(name): the code that examines what the page's kernel has under this name. It raises what is wrong.
//   ends: what ends an examination, to be said when one takes long.
//   examiner: where it comes from if a kernel does not have it: code that fails there, `carried`, and the `address` of a
//     program that brings it.
//   solved(name, block): take note that it is solved, by what is written into the block of this id.
//   changed(name, block): take note that something else is written there.
//   next(exercises, block): where to go on from the block of this id, as an element; of [name, id of the block] each, in
//     the order of the page.
//   scores(source): whether this code gives a score of the page's answers, and so needs them alone.
//   tally(names): how many of these are solved, in words.
//   count(), forget(): how many are solved, and that they no longer are.
const none = { stub: () => undefined, scores: () => false, changed: () => {}, count: () => 0, forget: () => {} };
const named = document.documentElement.dataset.liveExercises;

export const { stub, cleared, examination, ends, examiner, solved, changed, next, scores, tally, count, forget } = named
  ? await import(named)
  : none;
