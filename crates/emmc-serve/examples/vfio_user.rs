//! A new card of a shipped profile behind the controller: `vfio_user PROFILE SOCKET [cqe|no-cqe|hs200]
//! [DILATION|no-delay]`.
//!
//! Nothing is stored: this is for trials of the controller alone. It ends when its standard input is closed.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::pci::Identity;
use emmc_serve::sdhci::HostFaults;
use emmc_serve::served::{Served, ServedOptions};
use emmc_serve::vfio_user::{VfioUserOptions, serve};
use emmc_units::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [profile, socket, rest @ ..] = arguments.as_slice() else {
        return Err("expected PROFILE SOCKET [cqe|no-cqe|hs200] [DILATION|no-delay]".into());
    };
    let mut options = VfioUserOptions::default();
    let mut timing = ServedOptions::default();
    for word in rest {
        match (word.as_str(), word.parse()) {
            ("no-delay", _) => timing.delays = false,
            (_, Ok(dilation)) => timing.dilation = dilation,
            ("cqe", _) => options.identity = Identity::Gl9763e,
            ("no-cqe", _) => options.identity = Identity::Gl9763eWithoutQueue,
            ("hs200", _) => options.identity = Identity::Generic,
            (_, Err(error)) => {
                return Err(format!("{word}: expected cqe, no-cqe, hs200, no-delay or a number: {error}").into());
            }
        }
    }
    let profile = shipped::named(profile)?;
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 })?;
    let served = Arc::new(Served::new(card, Instant::START, timing));
    let server = serve(served, HostFaults::default(), Path::new(socket), options)?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    server.stop();
    Ok(())
}
