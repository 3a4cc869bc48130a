// fails at compiles: the assembler is to read beside.bin
// Its code comes from a file that no line of the preprocessor names.
asm(".globl mine\nmine:\n.incbin \"beside.bin\"\n");
