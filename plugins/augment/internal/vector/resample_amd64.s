#include "textflag.h"

#define PRODUCT(at, t, sum) \
	MOVUPS at(AX), t; MOVUPS at(BX), X6; MULPS X6, t; ADDPS t, sum

// func products(dst *float32, n int, x *float32, phases *[]float32, taps, phase, up, step, rest int)
TEXT ·products(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI; MOVQ n+8(FP), CX
	MOVQ x+16(FP), SI; MOVQ phases+24(FP), DX
	MOVQ taps+32(FP), R8; MOVQ phase+40(FP), R9; MOVQ up+48(FP), R12
	MOVQ step+56(FP), R10; MOVQ rest+64(FP), R11

next:
	LEAQ  (R9)(R9*2), AX // a slice has three words
	MOVQ  (DX)(AX*8), BX; MOVQ SI, AX
	XORPS X0, X0; XORPS X1, X1
	MOVQ  R8, R13; SUBQ $16, R13
	JLT   four

sixteen:
	PRODUCT(0, X2, X0)
	PRODUCT(16, X3, X1)
	PRODUCT(32, X4, X0)
	PRODUCT(48, X5, X1)
	ADDQ $64, AX; ADDQ $64, BX; SUBQ $16, R13
	JGE  sixteen

four:
	ADDPS X1, X0
	ADDQ  $12, R13
	JLT   one

fourNext:
	PRODUCT(0, X2, X0)
	ADDQ $16, AX; ADDQ $16, BX; SUBQ $4, R13
	JGE  fourNext

one:
	ADDQ $4, R13
	JEQ  sum

oneNext:
	MOVSS (AX), X2; MULSS (BX), X2; ADDSS X2, X0
	ADDQ  $4, AX; ADDQ $4, BX; SUBQ $1, R13
	JNE   oneNext

sum:
	MOVAPS  X0, X2; SHUFPS $0xb1, X2, X2; ADDPS X2, X0 // (0+1), (2+3)
	MOVHLPS X0, X2; ADDSS X2, X0; MOVSS X0, (DI)
	ADDQ $4, DI; LEAQ (SI)(R10*4), SI; ADDQ R11, R9
	CMPQ R9, R12
	JLT  same
	SUBQ R12, R9; ADDQ $4, SI

same:
	SUBQ $1, CX
	JNE  next
	RET
