//! Merges disks and stated values of two sources.

use crate::{BlockLayer, Disk, Stated};

impl BlockLayer {
    pub(super) fn merge(&mut self, other: Self) {
        for disk in other.disks {
            match self.disks.iter_mut().find(|known| known.name == disk.name) {
                Some(known) => known.merge(disk),
                None => self.disks.push(disk),
            }
        }
        for filesystem in other.filesystems {
            if !self.filesystems.contains(&filesystem) {
                self.filesystems.push(filesystem);
            }
        }
        self.trim = self.trim.take().or(other.trim);
    }
}

impl Disk {
    pub(super) fn merge(&mut self, other: Self) {
        self.bytes = self.bytes.or(other.bytes);
        self.read_only = self.read_only.or(other.read_only);
        for partition in other.partitions {
            match self.partitions.iter_mut().find(|known| known.name == partition.name) {
                Some(known) => {
                    known.start = known.start.or(partition.start);
                    known.bytes = known.bytes.or(partition.bytes);
                    known.kind = known.kind.take().or(partition.kind);
                    known.mount = known.mount.take().or(partition.mount);
                }
                None => self.partitions.push(partition),
            }
        }
    }
}

impl Stated {
    pub(super) fn merge(&mut self, other: Self) {
        self.manufacturer_id = self.manufacturer_id.or(other.manufacturer_id);
        self.oem_id = self.oem_id.or(other.oem_id);
        self.name = self.name.take().or(other.name);
        self.serial = self.serial.or(other.serial);
        self.date = self.date.take().or(other.date);
        self.mmc_version = self.mmc_version.take().or(other.mmc_version);
        self.sd_version = self.sd_version.take().or(other.sd_version);
        self.bus_speed_hz = self.bus_speed_hz.or(other.bus_speed_hz);
        self.bus_mode = self.bus_mode.take().or(other.bus_mode);
        self.bus_width = self.bus_width.take().or(other.bus_width);
        self.user_capacity = self.user_capacity.take().or(other.user_capacity);
        self.hc_wp_group = self.hc_wp_group.or(other.hc_wp_group);
        self.erase_group = self.erase_group.or(other.erase_group);
        self.enh_user_size = self.enh_user_size.take().or(other.enh_user_size);
        self.max_enh_size = self.max_enh_size.or(other.max_enh_size);
    }
}
