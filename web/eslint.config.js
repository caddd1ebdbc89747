// What eslint asks of the pages' sources: the recommended rules for TypeScript and Svelte. svelte-check has the types.
import svelte from 'eslint-plugin-svelte';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default ts.config(
  ...ts.configs.recommended,
  ...svelte.configs.recommended,
  ...svelte.configs.prettier,
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
    rules: {
      // Sets and maps of the state are replaced, never changed; what $props() gives is not assigned.
      'svelte/prefer-svelte-reactivity': 'off',
      'prefer-const': 'off',
      // {' '} keeps a space that a formatter would not.
      'svelte/no-useless-mustaches': 'off',
      // svelte-check knows which warnings there are.
      'svelte/no-unused-svelte-ignore': 'off',
    },
  },
  {
    rules: {
      eqeqeq: 'error',
      'max-lines': ['error', { max: 700 }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
);
