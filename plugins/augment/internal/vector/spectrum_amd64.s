#include "textflag.h"

// func multiplyAddAll(sum, a, b *complex128, n int)
TEXT ·multiplyAddAll(SB), NOSPLIT, $0-32
	MOVQ  sum+0(FP), DI; MOVQ a+8(FP), SI
	MOVQ  b+16(FP), DX; MOVQ n+24(FP), CX
	MOVOU ·signLow(SB), X7

next:
	MOVUPD (SI), X0; MOVUPD (DX), X2
	MOVAPD X0, X1; SHUFPD $1, X1, X1
	MOVAPD X2, X3; UNPCKLPD X2, X2; UNPCKHPD X3, X3
	MULPD  X2, X0; MULPD X3, X1; XORPD X7, X1 // (ac, bc), (-bd, ad)
	ADDPD  X1, X0
	MOVUPD (DI), X4; ADDPD X0, X4; MOVUPD X4, (DI)
	ADDQ   $16, SI; ADDQ $16, DX; ADDQ $16, DI
	SUBQ   $1, CX
	JNE    next
	RET
