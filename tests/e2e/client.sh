#!/bin/bash
# A kernel in bash, written from PROTOCOL.md alone: client.sh SOCKET ROOT DIRENV.
# Its environment is its base. It prints the frames that it got, then the variable
# that a program which it starts has.
set -u
socket=$1 root=$2 direnv=$3 LC_ALL=C
export -n LC_ALL

# The socket's folder: ours, and nobody else may write there.
folder=${socket%/*}
[[ $(stat -c %u "$folder") == "$UID" && $(stat -c %u "$socket") == "$UID" ]] || exit 3
(( (8#$(stat -c %a "$folder") & 8#022) == 0 )) || exit 3

text() { # a JSON string
  local s=$1
  s=${s//\\/\\\\} s=${s//\"/\\\"} s=${s//$'\n'/\\n} s=${s//$'\t'/\\t}
  printf '"%s"' "$s"
}

names=()
while IFS='=' read -r -d '' name _; do
  case $name in
    PWD | OLDPWD | SHLVL | _ | JPY_* | DIRENV_DIR | DIRENV_FILE | DIRENV_WATCHES | DIRENV_DIFF) ;;
    *) names+=("$name") ;;
  esac
done < <(env -0)
mapfile -t names < <(printf '%s\n' "${names[@]}" | sort)

fingerprint=$(for name in "${names[@]}"; do printf '%s=%s\0' "$name" "${!name}"; done | sha256sum)
fingerprint=${fingerprint%% *}
environment=
for name in "${names[@]}"; do
  environment+="${environment:+,}$(text "$name"):$(text "${!name}")"
done

coproc PIPE { exec socat - "UNIX-CONNECT:$socket"; }
say() { printf '%s\n' "$1" >&"${PIPE[1]}"; }
hear() { IFS= read -r -t 20 frame <&"${PIPE[0]}" && printf '%s\n' "$frame"; }
is() { [[ $frame == *"\"type\":\"$1\""* ]]; }

say "{\"type\":\"hello\",\"protocol\":1,\"pid\":$$,\"client\":\"bash/1\",\"capabilities\":[],\"cwd\":{\"path\":$(text "$PWD"),\"dev\":\"$(stat -c %d .)\",\"ino\":\"$(stat -c %i .)\"}}"
hear && is welcome || exit 4
ask="{\"type\":\"export\",\"id\":1,\"root\":$(text "$root"),\"fingerprint\":\"$fingerprint\",\"direnv\":$(text "$direnv")"
say "$ask}"
hear && is need_base || exit 5
say "$ask,\"environment\":{$environment}}"
while hear; do is progress || break; done
is diff || exit 6
value=${frame#*\"FOO\":\"} value=${value%%\"*}
export FOO=$value
say '{"type":"status","id":2}'
hear && is done || exit 7
say "{\"type\":\"left\",\"root\":$(text "$root")}"
say '{"type":"status","id":3}'
hear && is done || exit 8
printf 'variable:%s\n' "$(sh -c 'printf %s "$FOO"')"
