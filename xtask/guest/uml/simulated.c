// SPDX-License-Identifier: GPL-2.0
/*
 * A User-Mode Linux in simulated time: the work of its processor costs what the kernel's parameters say, and the host's
 * random numbers are the same in every run.
 */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/moduleparam.h>
#include <linux/time-internal.h>
#include <linux/types.h>
#include <trace/events/block.h>
#include <trace/events/filemap.h>
#include <trace/events/sched.h>

static unsigned int cost_syscall_ns, cost_read_ns, cost_write_ns, cost_irq_ns;
static unsigned int cost_copy_ns, cost_page_ns, cost_bio_ns, cost_issue_ns, cost_done_ns, cost_switch_ns;
static unsigned int cost_mapped_ns;

core_param(cost_syscall_ns, cost_syscall_ns, uint, 0644);
core_param(cost_read_ns, cost_read_ns, uint, 0644);
core_param(cost_write_ns, cost_write_ns, uint, 0644);
core_param(cost_irq_ns, cost_irq_ns, uint, 0644);
core_param(cost_copy_ns, cost_copy_ns, uint, 0644);
core_param(cost_page_ns, cost_page_ns, uint, 0644);
core_param(cost_bio_ns, cost_bio_ns, uint, 0644);
core_param(cost_mapped_ns, cost_mapped_ns, uint, 0644);
core_param(cost_issue_ns, cost_issue_ns, uint, 0644);
core_param(cost_done_ns, cost_done_ns, uint, 0644);
core_param(cost_switch_ns, cost_switch_ns, uint, 0644);

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

/* Called with the bytes that are copied from or to a program: the cost is that of 1024. */
void simulated_copy(unsigned long bytes);
void simulated_copy(unsigned long bytes)
{
	static u64 rest;

	if (!cost_copy_ns)
		return;
	rest += (u64)bytes * cost_copy_ns;
	pass(rest / 1024);
	rest %= 1024;
}

static void page_cached(void *data, struct folio *folio)
{
	pass(cost_page_ns);
}

static void bio_queued(void *data, struct bio *bio)
{
	/* Its pages are pinned and mapped for the controller. */
	pass(cost_bio_ns + cost_mapped_ns * (bio->bi_iter.bi_size / 4096));
}

static void request_issued(void *data, struct request *request)
{
	pass(cost_issue_ns);
}

static void request_done(void *data, struct request *request, blk_status_t error, unsigned int bytes)
{
	pass(cost_done_ns);
}

static void task_switched(void *data, bool preempt, struct task_struct *from, struct task_struct *to,
			  unsigned int from_state)
{
	pass(cost_switch_ns);
}

/* The work of the layers above the drivers costs time where they have a trace point. */
static int __init watch_layers(void)
{
	int error = register_trace_mm_filemap_add_to_page_cache(page_cached, NULL);

	if (!error)
		error = register_trace_block_bio_queue(bio_queued, NULL);
	if (!error)
		error = register_trace_block_rq_issue(request_issued, NULL);
	if (!error)
		error = register_trace_block_rq_complete(request_done, NULL);
	if (!error)
		error = register_trace_sched_switch(task_switched, NULL);
	return error;
}
late_initcall(watch_layers);

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
