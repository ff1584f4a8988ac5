#include "textflag.h"

// A step of Horner's method: sum*y + the constant number n of the table.
#define TERM(n, sum) \
	MULPS X1, sum; MOVUPS (16*n)(DX), X6; ADDPS X6, sum

// func softClipLanes(x *float32, n int, inverse, level float32, constants *[13][4]float32)
TEXT ·softClipLanes(SB), NOSPLIT, $0-32
	MOVQ   x+0(FP), SI; MOVQ n+8(FP), CX; MOVQ constants+24(FP), DX
	MOVSS  inverse+16(FP), X8; SHUFPS $0, X8, X8
	MOVSS  level+20(FP), X9; SHUFPS $0, X9, X9
	MOVUPS (DX), X10; MOVUPS 16(DX), X11  // largest, -largest
	MOVUPS 32(DX), X12; MOVUPS 144(DX), X13 // p6, q3

next:
	MOVUPS (SI), X0; MULPS X8, X0
	MINPS  X10, X0; MAXPS X11, X0
	MOVAPS X0, X1; MULPS X1, X1
	MOVAPS X12, X2
	TERM(3, X2)
	TERM(4, X2)
	TERM(5, X2)
	TERM(6, X2)
	TERM(7, X2)
	TERM(8, X2)
	MOVAPS X13, X3
	TERM(10, X3)
	TERM(11, X3)
	TERM(12, X3)
	MULPS  X2, X0; DIVPS X3, X0; MULPS X9, X0
	MOVUPS X0, (SI)
	ADDQ   $16, SI; SUBQ $4, CX
	JNE    next
	RET
