#include "textflag.h"

// signLow has the sign of the lower number of two.
DATA ·signLow+0(SB)/8, $0x8000000000000000
DATA ·signLow+8(SB)/8, $0
GLOBL ·signLow(SB), RODATA|NOPTR, $16

// A twiddle factor (c, s) becomes (c, c) and (-s, s).
#define TWIDDLE(at, c, s) \
	MOVSD at(DX), c; UNPCKLPD c, c; MOVSD at+8(DX), s; UNPCKLPD s, s; XORPD X15, s

// The product of (a, b) and a twiddle factor is (ac, bc) + (b(-s), as).
#define TIMES(x, c, s) \
	MOVAPD x, X7; SHUFPD $1, X7, X7; MULPD c, x; MULPD s, X7; ADDPD X7, x

// func radix4(to, from *complex128, twiddles *[3]complex128, runs, stride int)
TEXT ·radix4(SB), NOSPLIT, $0-40
	MOVQ   to+0(FP), DI
	MOVQ   from+8(FP), SI
	MOVQ   twiddles+16(FP), DX
	MOVQ   runs+24(FP), CX
	MOVQ   stride+32(FP), R8
	SHLQ   $4, R8              // bytes between the results of a butterfly
	MOVQ   R8, R9
	IMULQ  CX, R9              // bytes between its inputs
	LEAQ   (SI)(R9*2), R11
	LEAQ   (R8)(R8*2), R12
	MOVOU  ·signLow(SB), X15

run:
	TWIDDLE(0, X9, X10)
	TWIDDLE(16, X11, X12)
	TWIDDLE(32, X13, X14)
	LEAQ (DI)(R8*1), R10

next:
	MOVUPD (SI), X0
	MOVUPD (SI)(R9*1), X1
	MOVUPD (R11), X2
	MOVUPD (R11)(R9*1), X3
	MOVAPD X0, X4; ADDPD X2, X4; SUBPD X2, X0 // a+c, a-c
	MOVAPD X1, X5; ADDPD X3, X5; SUBPD X3, X1 // b+d, b-d
	SHUFPD $1, X1, X1; XORPD X15, X1          // i(b-d)
	MOVAPD X4, X6; ADDPD X5, X4; SUBPD X5, X6
	MOVAPD X0, X2; ADDPD X1, X0; SUBPD X1, X2
	TIMES(X2, X9, X10)
	TIMES(X6, X11, X12)
	TIMES(X0, X13, X14)
	MOVUPD X4, (DI)
	MOVUPD X2, (DI)(R8*1)
	MOVUPD X6, (DI)(R8*2)
	MOVUPD X0, (DI)(R12*1)
	ADDQ   $16, SI; ADDQ $16, R11; ADDQ $16, DI
	CMPQ   DI, R10
	JNE    next
	ADDQ   R12, DI
	ADDQ   $48, DX
	DECQ   CX
	JNE    run
	RET
