//! Power cuts and recovery.
