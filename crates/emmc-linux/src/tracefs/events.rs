//! The kernel's events that are recorded.

/// Events of the block and MMC layers that bound the spans, of direct I/O, and of pages that a write makes dirty. A
/// request of one bio has five of them.
pub(super) const EVENTS: [&str; 12] = [
    "block/block_bio_queue",
    "block/block_split",
    "block/block_bio_backmerge",
    "block/block_bio_frontmerge",
    "block/block_rq_merge",
    "block/block_rq_issue",
    "block/block_rq_requeue",
    "block/block_rq_complete",
    "mmc/mmc_request_start",
    "mmc/mmc_request_done",
    "iomap/iomap_dio_rw_begin",
    "writeback/writeback_dirty_folio",
];
/// The steps of a request within the block layer, which no span needs.
pub(super) const STEPS: [&str; 2] = ["block/block_getrq", "block/block_rq_insert"];
/// The begin of each wake-up: with it the wait for a processor is known.
pub(super) const WAKE_UPS: &str = "sched/sched_waking";
/// Which file is written back, when a journal commits, and who waits for which file system: rare events, of which a
/// kernel has some.
pub(super) const REASON_EVENTS: [&str; 4] = [
    "writeback/writeback_single_inode_start",
    "jbd2/jbd2_start_commit",
    "jbd2/jbd2_end_commit",
    "ext4/ext4_sync_file_enter",
];
/// Interrupts of MMC controllers, whose handlers are called after them: they bound the time at the card more closely.
pub(super) const INTERRUPTS: &str = "irq/irq_handler_entry";
pub(super) const INTERRUPTS_OF: &str = "name ~ \"mmc*\"";

/// Time limits of commands, which the driver starts right before it writes a command: the function that the timer
/// calls.
pub(super) const LIMITS: &str = "timer/timer_start";
pub(super) const LIMITS_OF: &str = "sdhci_timeout_data_timer";

/// Switches, those to and from the idle thread: what the processors work, and when a thread that waited has one.
pub(super) const SWITCHES: &str = "sched/sched_switch";
pub(super) const SWITCHES_OF: &str = "prev_pid == 0 || next_pid == 0";

/// Writes into files: exact in ext4 and f2fs, pages elsewhere. A kernel has some of them.
pub(super) const FILE_EVENTS: [&str; 6] = [
    "ext4/ext4_da_write_end",
    "ext4/ext4_write_end",
    "ext4/ext4_journalled_write_end",
    "f2fs/f2fs_write_end",
    "writeback/writeback_dirty_folio",
    "writeback/writeback_dirty_page",
];

/// System calls that read, write or sync.
pub(super) const CALLS_RECORDED: [&str; 18] = [
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "io_submit",
    "io_uring_enter",
];
