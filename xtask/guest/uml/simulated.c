// SPDX-License-Identifier: GPL-2.0
/*
 * A User-Mode Linux in simulated time: the work of its processor costs what the kernel's parameters say, and the host's
 * random numbers are the same in every run.
 */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/time-internal.h>
#include <linux/types.h>

static unsigned int cost_syscall_ns, cost_read_ns, cost_write_ns, cost_irq_ns;

core_param(cost_syscall_ns, cost_syscall_ns, uint, 0644);
core_param(cost_read_ns, cost_read_ns, uint, 0644);
core_param(cost_write_ns, cost_write_ns, uint, 0644);
core_param(cost_irq_ns, cost_irq_ns, uint, 0644);

static void pass(unsigned int ns)
{
	if (ns && (time_travel_mode == TT_MODE_INFCPU || time_travel_mode == TT_MODE_EXTERNAL))
		time_travel_ndelay(ns);
}

/* Called at the start of each system call. */
void simulated_syscall(void);
void simulated_syscall(void)
{
	pass(cost_syscall_ns);
}

/* Called when a register's value has come. */
void simulated_read(void);
void simulated_read(void)
{
	pass(cost_read_ns);
}
EXPORT_SYMBOL_GPL(simulated_read);

/* Called when a register has been written. */
void simulated_write(void);
void simulated_write(void)
{
	pass(cost_write_ns);
}
EXPORT_SYMBOL_GPL(simulated_write);

/* Called before an interrupt's handler. */
void simulated_interrupt(void);
void simulated_interrupt(void)
{
	pass(cost_irq_ns);
}
EXPORT_SYMBOL_GPL(simulated_interrupt);

/* In place of the C library's: the kernel's generator is seeded by it. Everything else is repeatable already. */
ssize_t getrandom(void *into, size_t bytes, unsigned int flags);
ssize_t getrandom(void *into, size_t bytes, unsigned int flags)
{
	static u64 state = 1;
	u8 *to = into;
	size_t i;

	for (i = 0; i < bytes; i++) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		to[i] = state >> 56;
	}
	return bytes;
}
