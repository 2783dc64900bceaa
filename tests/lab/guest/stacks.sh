# Stacks over the topology's drives, as hosts carry them; each with a mounted file system where it can have one.
set -e
fail() { echo "LAB FAILED stacks: $1"; exit 1; }

namespace_of() { # serial -> block device of the only namespace
    for serial in /sys/class/nvme/*/serial; do
        [ "$(tr -d ' ' <"$serial")" = "$1" ] || continue
        controller=$(basename "$(dirname "$serial")")
        for block in /sys/block/"$controller"n*; do
            echo "/dev/$(basename "$block")"
            return
        done
    done
    fail "no drive $1"
}

disk_of() { # serial -> SCSI disk
    for disk in /sys/block/sd*; do
        # Vital product data page 80h (SPC): four bytes of header, then the serial number.
        [ "$(dd if="$disk/device/vpd_pg80" bs=1 skip=4 2>/dev/null | tr -d '\0 ')" = "$1" ] || continue
        echo "/dev/$(basename "$disk")"
        return
    done
    fail "no disk $1"
}

sectors() { cat "/sys/block/$(basename "$1")/size"; }

modprobe -a dm-mod dm-crypt dm-delay raid1 loop nvmet nvme-loop ext4 xts aes_generic
modprobe scsi_debug dev_size_mb=64
mkdir -p /mnt/crypt /mnt/mirror /mnt/linear

# LABNV2: LUKS > LVM > ext4
crypt=$(namespace_of LABNV2)
printf secret | cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 "$crypt" -
printf secret | cryptsetup open "$crypt" labcrypt -
pvcreate -q -ff -y /dev/mapper/labcrypt
vgcreate -q labvg /dev/mapper/labcrypt
lvcreate -q -y -Wn -Zn --noudevsync -l 100%FREE -n data labvg
dmsetup mknodes
mkfs.ext4 -q -F /dev/mapper/labvg-data
mount /dev/mapper/labvg-data /mnt/crypt

# LABSATA2 and LABSCSI1: md raid1 > ext4
mdadm --create /dev/md0 --level=1 --raid-devices=2 --metadata=1.2 --assume-clean --run \
    "$(disk_of LABSATA2)" "$(disk_of LABSCSI1)"
mkfs.ext4 -q -F /dev/md0
mount /dev/md0 /mnt/mirror

# LABNV3: dm-linear > ext4; LABSATA1: dm-delay of 100 ms, raw (below 50 ms its thread spins)
linear=$(namespace_of LABNV3)
delayed=$(disk_of LABSATA1)
dmsetup create --noudevsync lablinear --table "0 $(sectors "$linear") linear $linear 0"
dmsetup create --noudevsync labdelay --table "0 $(sectors "$delayed") delay $delayed 0 100"
dmsetup mknodes
mkfs.ext4 -q -F /dev/mapper/lablinear
mount /dev/mapper/lablinear /mnt/linear

# LABLOOP: NVMe over fabrics without a network
truncate -s 64M /tmp/fabrics.img
losetup /dev/loop0 /tmp/fabrics.img
target=/sys/kernel/config/nvmet
mkdir "$target/subsystems/labloop"
echo 1 >"$target/subsystems/labloop/attr_allow_any_host"
echo LABLOOP >"$target/subsystems/labloop/attr_serial"
echo "LAB LOOP MODEL" >"$target/subsystems/labloop/attr_model"
mkdir "$target/subsystems/labloop/namespaces/1"
echo /dev/loop0 >"$target/subsystems/labloop/namespaces/1/device_path"
echo 1 >"$target/subsystems/labloop/namespaces/1/enable"
mkdir "$target/ports/1"
echo loop >"$target/ports/1/addr_trtype"
ln -s "$target/subsystems/labloop" "$target/ports/1/subsystems/labloop"
host=11111111-2222-3333-4444-555555555555
echo "transport=loop,nqn=labloop,hostnqn=nqn.2014-08.org.nvmexpress:uuid:$host,hostid=$host" >/dev/nvme-fabrics

echo "LAB stacks ready"
