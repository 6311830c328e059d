/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that is not a plugin. */
__attribute__((visibility("default"))) int something_else(void);
int something_else(void) { return 1; }
