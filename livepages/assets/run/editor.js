// An editor in the place of a block: a text field with colors behind it (vendor/editor.js), and the keys of this site.
import {
  createEditor,
  editHistory,
  editorCommands,
  indentSelectedLines,
  insertLineAndIndent,
  insertTab,
  toggleComment,
} from "../vendor/editor.js";

const KEYS = {
  Tab: (editor) => {
    const [start, end] = editor.getSelection();
    return start === end ? insertTab(editor, start) : indentSelectedLines(editor);
  },
  "8+Tab": (editor) => indentSelectedLines(editor, true),
  Enter: (editor) => insertLineAndIndent(editor),
  "Mod+/": (editor) => toggleComment(editor),
};

// Put an editor into an element.
//   name: what the block is called, for readers who hear the page.
//   value: the code.
//   changed: called after each change.
//   run: called for Ctrl-Enter, and with true for Shift-Enter.
//   leave: called for Escape.
export const edit = (place, { name, value, changed, run, leave }) => {
  const options = { language: "python", value, tabSize: 4, insertSpaces: true, lineNumbers: false, onUpdate: changed };
  const editor = createEditor(place, options, editorCommands(KEYS, []), editHistory());
  editor.textarea.ariaLabel = name;
  editor.textarea.setAttribute("aria-keyshortcuts", "Control+Enter Shift+Enter Escape");
  place.addEventListener(
    "keydown",
    (event) => {
      if (event.isComposing) return;
      const runs = event.key === "Enter" && (event.ctrlKey || event.metaKey || event.shiftKey);
      if (!runs && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      if (runs) run(event.shiftKey);
      else leave();
    },
    true,
  );
  return editor;
};
