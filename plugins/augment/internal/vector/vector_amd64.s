#include "textflag.h"

// All instructions are SSE2, which every amd64 processor has. n is a multiple of 8, and not 0.

DATA magnitude<>+0(SB)/8, $0x7fffffff7fffffff
DATA magnitude<>+8(SB)/8, $0x7fffffff7fffffff
GLOBL magnitude<>(SB), RODATA|NOPTR, $16

// The larger of two integers, neither of them negative: max + (x - max if that is positive, else 0).
#define LARGER(at, x, sign, max) \
	MOVOU at(SI), x; PAND X0, x; PSUBL max, x; MOVO x, sign; PSRAL $31, sign; PANDN x, sign; PADDL sign, max

// func scaleLanes(x *float32, n int, factor float32)
TEXT ·scaleLanes(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI; MOVQ n+8(FP), CX
	MOVSS factor+16(FP), X2; SHUFPS $0, X2, X2

scaleNext:
	MOVUPS (SI), X3; MOVUPS 16(SI), X4
	MULPS  X2, X3; MULPS X2, X4
	MOVUPS X3, (SI); MOVUPS X4, 16(SI)
	ADDQ $32, SI; SUBQ $8, CX
	JNE  scaleNext
	RET

// func clipLanes(x *float32, n int, limit, factor float32)
TEXT ·clipLanes(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), SI; MOVQ n+8(FP), CX
	MOVSS  limit+16(FP), X0; SHUFPS $0, X0, X0
	MOVSS  factor+20(FP), X2; SHUFPS $0, X2, X2
	XORPS  X1, X1; SUBPS X0, X1

clipNext:
	MOVUPS (SI), X3; MOVUPS 16(SI), X4
	MINPS  X0, X3; MINPS X0, X4
	MAXPS  X1, X3; MAXPS X1, X4
	MULPS  X2, X3; MULPS X2, X4
	MOVUPS X3, (SI); MOVUPS X4, 16(SI)
	ADDQ $32, SI; SUBQ $8, CX
	JNE  clipNext
	RET

// func peakLanes(x *float32, n int, peaks *[lanes]uint32)
TEXT ·peakLanes(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), SI; MOVQ n+8(FP), CX
	MOVOU magnitude<>(SB), X0
	PXOR  X1, X1; PXOR X2, X2

peakNext:
	LARGER(0, X3, X4, X1)
	LARGER(16, X5, X6, X2)
	ADDQ $32, SI; SUBQ $8, CX
	JNE  peakNext
	MOVQ  peaks+16(FP), DI
	MOVOU X1, (DI)
	MOVOU X2, 16(DI)
	RET
