#!/bin/dash
# Network and shell server of a guest whose first process is systemd, which does the rest of what start.sh does.
set -e
exec >/dev/console 2>&1
trap '[ $? = 0 ] || echo "LAB FAILED managed"' EXIT
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/bb

modprobe virtio_net
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up

printf '#!/bin/sh\nexec sh 2>&1\n' >/run/shell
chmod +x /run/shell
echo "LAB ready $(cut -d' ' -f1 /proc/uptime)"
exec socat -t 100000 TCP-LISTEN:2222,reuseaddr,fork,backlog=40 EXEC:/run/shell >/dev/null 2>&1
