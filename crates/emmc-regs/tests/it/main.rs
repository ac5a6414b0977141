//! The integration tests of `emmc-regs`, one module per topic, linked once.

mod real_dumps;
