// Copies what the link before a button leads to, as text. The browser waits for it, because it allows a copy only while
// it still counts as the reader's act.
export const copy = async (button) => {
  const label = button.textContent;
  const text = fetch(button.previousElementSibling.href).then(async (answer) => {
    if (!answer.ok) throw new Error(answer.statusText);
    return new Blob([await answer.text()], { type: "text/plain" });
  });
  try {
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);
    button.textContent = "(copied)";
  } catch {
    button.textContent = "(could not be copied)";
  }
  setTimeout(() => (button.textContent = label), 2000);
};
