//! Which layers a part gets, one over the other.

use super::{Ftl, RegionSpec};
use crate::nand::Nand;
use crate::profile::FtlConfig;

/// The layers of a region.
pub fn build(_config: &FtlConfig, _spec: &RegionSpec, _nand: &mut Nand) -> Box<dyn Ftl> {
    todo!("placeholder until the layers are in")
}
