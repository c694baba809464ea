#!/bin/sh
# Written by `kerntune deploy`; `kerntune deploy --rollback` removes it.
#
#   confirm.sh trial      run by kerntune-deploy.service under the new kernel: confirms it after the health check,
#                         or restarts the machine, which starts the old kernel
#   confirm.sh confirm    makes the new kernel the default
set -u
root=@ROOT@
id=@ID@
check=@CHECK@
within=@WITHIN@
state=$root/var/lib/kerntune-deploy
custom=$root@CUSTOM@
new=.kerntune-new

# Records the outcome in one step.
put() {
    printf '%s\n' "$1" >"$state/outcome$new" && sync "$state/outcome$new" &&
        mv -f "$state/outcome$new" "$state/outcome" && sync "$state"
}

# Replaces our entry, which starts once, by the one that is the default.
confirm() {
    sed '/^# kerntune deploy: begin$/,/^# kerntune deploy: end$/d' "$custom" >"$custom$new" &&
        cat "$state/confirmed.cfg" >>"$custom$new" && sync "$custom$new" &&
        mv -f "$custom$new" "$custom" && sync "${custom%/*}" && put confirmed
}

seconds() {
    read -r up rest <"$root/proc/uptime"
    echo "${up%%.*}"
}

restart() {
    sync
    systemctl --no-block reboot
    sleep 60
    systemctl --force --force reboot
    sleep 10
    echo b >"$root/proc/sysrq-trigger"
}

trial() {
    case " $(cat "$root/proc/cmdline") " in
    *" kerntune_deploy=$id "*) ;;
    *) exit 0 ;;
    esac
    end=$(($(seconds) + within))
    tried=
    while left=$((end - $(seconds))) && [ "$left" -gt 0 ]; do
        [ -n "$tried" ] || { put tried 2>/dev/null && tried=yes; }
        case $(systemctl is-system-running) in
        running | degraded)
            if [ -z "$check" ]; then
                put running
                exit 0
            fi
            if timeout -k 5 "$left" sh -c "$check" </dev/null && confirm; then
                echo "kerntune: the health check passed; this kernel is now the default"
                exit 0
            fi
            ;;
        esac
        sleep 2
    done
    echo "kerntune: no success within $within s; restarting with the old kernel"
    put failed
    restart
}

case ${1-} in
trial) trial ;;
confirm) confirm ;;
*) echo "usage: $0 trial|confirm" >&2 && exit 2 ;;
esac
