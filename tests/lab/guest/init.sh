#!/bin/busybox sh
# First process of the guest: brings up 9p, puts the unpacked Debian packages where programs expect them, goes on in
# start.sh. The loading order is the modules' order of dependence.
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
while read -r module; do
    busybox insmod "/modules/$module" || echo "LAB FAILED insmod $module"
done </modules/order
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,ro,cache=loose sysroot /sysroot ||
    echo "LAB FAILED mount sysroot"
busybox mkdir -p /bb
busybox mv /bin/busybox /bb/busybox
/bb/busybox rm -r /bin
for name in bin sbin lib lib64 usr; do
    /bb/busybox ln -s "sysroot/$name" "/$name"
done
# The sysroot's own programs come first: busybox only fills the gaps (dash does not prefer applets, busybox sh does).
/bb/busybox --install -s /bb
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/bb
# A first process that collects orphans: an ended agent must not stay behind as a zombie.
echo "::sysinit:/bin/dash /lab/start.sh" >/etc/inittab
exec /bb/init
