// For svelte-check: plain Svelte 5 with TypeScript, nothing preprocessed.
export default {};
