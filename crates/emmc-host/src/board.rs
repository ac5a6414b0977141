//! Boards that a virtual card can be put behind.

use emmc_units::{Bytes, Nanos};

use crate::page_cache::PageCache;
use crate::platform::{PLATFORMS, Platform};
use crate::system::HostModel;
use crate::{Access, Operation};

/// A board.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Board {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Cores.
    pub cores: u32,
    /// Where its spans were published, if they were.
    pub platform: Option<&'static Platform>,
    /// Its memory, if that was published.
    pub page_cache: Option<PageCache>,
    /// Where the figures are from.
    pub source: &'static str,
}

/// The boards that ship.
pub const BOARDS: [Board; 4] = [
    Board {
        name: PLATFORMS[0].name,
        title: PLATFORMS[0].title,
        cores: PLATFORMS[0].cores,
        platform: Some(&PLATFORMS[0]),
        page_cache: None,
        source: "white paper, Tables 1 and 2: spans by ftrace",
    },
    Board {
        name: PLATFORMS[1].name,
        title: PLATFORMS[1].title,
        cores: PLATFORMS[1].cores,
        platform: Some(&PLATFORMS[1]),
        page_cache: None,
        source: "white paper, Tables 1 and 3: spans by ftrace",
    },
    Board {
        name: "colibri-t30",
        title: "Toradex Colibri T30, 1 GB of memory; its own share of a request is in the card's profile",
        cores: 4,
        platform: None,
        page_cache: Some(PageCache { dirty: Bytes(75_000_000), cached: Bytes(700 << 20), copy_bytes_per_s: 400e6 }),
        // One figure for both runs: 256 MiB in 28.92 s with a sync and in 20.39 s without leave 79 MB; 13.61 s and
        // 10.17 s leave 68.
        source: "board vendor's dd and bonnie++ runs: what one wrote and the other did not. Copying: bonnie++ read 395 MB/s from memory",
    },
    Board {
        name: "colibri-imx6s",
        title: "Toradex Colibri iMX6S, 256 MB of memory; its own share of a request is in the card's profile",
        cores: 1,
        platform: None,
        page_cache: Some(PageCache { dirty: Bytes(27_000_000), cached: Bytes(120 << 20), copy_bytes_per_s: 300e6 }),
        source: "Assumed: 15 % (midway between the kernel's 10 and 20) of the 180 MB that 256 MB leave. Memory as published; copying assumed",
    },
];

/// The board of this name.
pub fn board(name: &str) -> Option<&'static Board> {
    BOARDS.iter().find(|board| board.name == name)
}

impl Board {
    /// What a read and a write past the page cache cost on it: the published direct workloads, else those that do not
    /// say.
    pub(crate) fn models(&self) -> Option<[HostModel; 2]> {
        let of = |operation| {
            let workloads = self.platform?.workloads.iter().filter(|workload| workload.operation == operation);
            let best = workloads.min_by_key(|workload| match workload.access {
                Access::Direct => 0,
                Access::Unstated => 1,
                Access::Sync => 2,
            })?;
            Some(HostModel::of(best))
        };
        Some([of(Operation::Read)?, of(Operation::Write)?])
    }

    /// A read through the page cache, and a write that is on the card when it returns: where they were published as
    /// such.
    pub(crate) fn sync_models(&self) -> Option<[HostModel; 2]> {
        let of = |operation| {
            let mut workloads = self.platform?.workloads.iter();
            let found =
                workloads.find(|workload| (workload.operation, workload.access) == (operation, Access::Sync))?;
            Some(HostModel::of(found))
        };
        Some([of(Operation::Read)?, of(Operation::Write)?])
    }

    /// Whether its controller hands the card more than one request at a time.
    pub fn queues(&self) -> bool {
        self.platform.is_none_or(|platform| platform.engine == crate::CqEngine::Hardware)
    }

    /// Between the end of a transfer and the start of the next where a core must start it; nothing where it was not
    /// published.
    pub(crate) fn gap(&self) -> Nanos {
        self.platform.map_or(Nanos::ZERO, |platform| platform.gap_completion + platform.gap_issue)
    }
}
