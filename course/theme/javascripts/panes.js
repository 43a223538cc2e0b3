// Linked panes (snippets/compiler_panes.py): what is pointed at, focused or chosen lights up in all of them.
document$.subscribe(() => {
  for (const panes of document.querySelectorAll(".live-panes")) {
    const parts = [...panes.querySelectorAll("[data-e]")];
    const at = (event) => event.target.closest("[data-e]")?.dataset.e;
    let chosen = "";

    const light = (numbers) => {
      const wanted = numbers.split(" ");
      for (const part of parts) {
        part.classList.toggle("live-lit", part.dataset.e.split(" ").some((number) => wanted.includes(number)));
      }
      const names = wanted.map((number) => panes.querySelector(`a[data-e="${number}"]`)?.ariaLabel);
      const programs = [...panes.querySelectorAll("[role=group]")].slice(1);
      const lines = programs.map((pane) => `${pane.ariaLabel} ${pane.querySelectorAll(".live-lit").length}`);
      panes.querySelector("[role=status]").textContent = !numbers
        ? "Choose an underlined expression to see\nwhat became of it in each language."
        : `${names.length > 1 ? `${names.length} expressions` : names[0]}\nLines: ${lines.join(", ")}`;
    };

    panes.addEventListener("pointerover", (event) => event.pointerType === "mouse" && light(at(event) ?? chosen));
    panes.addEventListener("pointerleave", () => light(chosen));
    panes.addEventListener("focusin", (event) => at(event) && light(at(event)));
    panes.addEventListener("focusout", () => light(chosen));
    panes.addEventListener("click", (event) => {
      const numbers = at(event);
      if (!numbers) return;
      event.preventDefault();
      event.stopPropagation();
      chosen = chosen === numbers ? "" : numbers;
      light(chosen);
    });
    // This script comes when the panes are about to be seen: the pointer or the focus may be there before it.
    light([...panes.querySelectorAll("[data-e]:is(:focus, :hover)")].at(-1)?.dataset.e ?? chosen);
  }
});
