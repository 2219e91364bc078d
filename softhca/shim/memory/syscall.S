/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * syscall(), and the same for this library itself. A library that watches mappings overwrites the
 * first instructions of mmap() and its kin, and makes their system calls by syscall(). So the calls
 * that change mappings go on to shim_by_number(). All other calls go to the kernel from here. The
 * function has no frame: programs make clone and vfork so, after which the child returns from here
 * on another stack, or on that of its parent.
 *
 * The linker (--wrap) leads every use of syscall() in this library to __wrap_syscall().
 */
#include <asm/unistd.h>

#if defined(__CET__) && defined(__x86_64__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

#ifndef __NR_process_madvise
#define __NR_process_madvise 440
#endif

	.text
	.hidden	shim_by_number
	.hidden	shim_syscall_failed

#if defined(__x86_64__)

#define FIRST	__NR_mmap
#define BIT(nr) (1 << ((nr) - FIRST))

	.globl	syscall
	.type	syscall, @function
	.balign	16
syscall:
	.cfi_startproc
	_CET_ENDBR
	leaq	-FIRST(%rdi), %rax
	cmpq	$(__NR_madvise - FIRST), %rax
	ja	2f
	movl	$(BIT(__NR_mmap) | BIT(__NR_mprotect) | BIT(__NR_munmap) | BIT(__NR_mremap) | BIT(__NR_madvise)), %r11d
	btl	%eax, %r11d
	jc	shim_by_number
	jmp	__wrap_syscall
2:	cmpq	$__NR_remap_file_pages, %rdi
	je	shim_by_number
	cmpq	$__NR_pkey_mprotect, %rdi
	je	shim_by_number
	cmpq	$__NR_process_madvise, %rdi
	je	shim_by_number
	jmp	__wrap_syscall
	.cfi_endproc
	.size	syscall, .-syscall

	.globl	__wrap_syscall
	.hidden	__wrap_syscall
	.type	__wrap_syscall, @function
	.balign	16
__wrap_syscall:
	.cfi_startproc
	_CET_ENDBR
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
	syscall
	cmpq	$-4095, %rax
	jae	1f
	ret
1:	movq	%rax, %rdi
	jmp	shim_syscall_failed
	.cfi_endproc
	.size	__wrap_syscall, .-__wrap_syscall

#elif defined(__aarch64__)

	.globl	syscall
	.type	syscall, %function
	.balign	16
syscall:
	.cfi_startproc
	hint	#34
	cmp	x0, #__NR_mmap
	b.eq	shim_by_number
	cmp	x0, #__NR_munmap
	b.eq	shim_by_number
	cmp	x0, #__NR_mremap
	b.eq	shim_by_number
	cmp	x0, #__NR_mprotect
	b.eq	shim_by_number
	cmp	x0, #__NR_madvise
	b.eq	shim_by_number
	cmp	x0, #__NR_remap_file_pages
	b.eq	shim_by_number
	cmp	x0, #__NR_pkey_mprotect
	b.eq	shim_by_number
	cmp	x0, #__NR_process_madvise
	b.eq	shim_by_number
	b	__wrap_syscall
	.cfi_endproc
	.size	syscall, .-syscall

	.globl	__wrap_syscall
	.hidden	__wrap_syscall
	.type	__wrap_syscall, %function
	.balign	16
__wrap_syscall:
	.cfi_startproc
	hint	#34
	uxtw	x8, w0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	mov	x6, x7
	svc	#0
	cmn	x0, #4095
	b.cs	1f
	ret
1:	b	shim_syscall_failed
	.cfi_endproc
	.size	__wrap_syscall, .-__wrap_syscall

#else
#error "softhca runs on x86-64 and aarch64 (configure.in)"
#endif

	.section .note.GNU-stack, "", %progbits
