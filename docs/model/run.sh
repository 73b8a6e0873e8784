#!/usr/bin/env bash
# Checks the models of this directory, and that spin refutes every mutant.
#
#	run.sh        five minutes and 1 GB on a machine with nothing else to do
#	run.sh -big   larger bounds as well: twelve minutes and 3 GB
#
# It needs spin (6.4 or newer) and a C compiler, and installs nothing. It exits
# with 1 if a model errs or a mutant is not refuted, with 2 if it cannot run.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

case "${1-}" in
'') big=false ;;
-big) big=true ;;
*) echo 'usage: run.sh [-big]' >&2; exit 2 ;;
esac
cc=${CC:-cc}
for tool in spin "$cc"; do
	command -v "$tool" >/dev/null && continue
	echo "run.sh: needs $tool (on Debian: apt-get install spin gcc)" >&2
	exit 2
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
failed=0

# check WANT MODEL FLAGS...: WANT is what the run has to end in.
check() {
	local want=$1 model=$2 got states start=$SECONDS
	shift 2
	local mode=(-DSAFETY) args=(-m10000)
	[[ " $* " != *' -DLIVE '* ]] || { mode=(-DNFAIR=4); args=(-a -f -m1000000); }
	spin -a "$@" "$here/$model" >spin.out 2>&1 || { cat spin.out; exit 2; }
	"$cc" -O1 -w "${mode[@]}" -DCOLLAPSE -DMEMLIM=8000 -o pan pan.c || exit 2
	./pan "${args[@]}" -w22 >pan.out 2>&1 || true
	case $(<pan.out) in
	*'assertion violated (o>=freed'*) got='uses a freed object' ;;
	*'assertion violated (early=='*) got='Barrier is early' ;;
	*'assertion violated (((behind=='*) got='Close leaves something' ;;
	*'assertion violated  !((ran&id'*) got='runs and is refused' ;;
	*'pan:1: invalid end state'*) got='sleeps for ever' ;;
	*'acceptance cycle'*) got='never ends' ;;
	*'assertion violated'* | *'pan:1:'*) got='errs otherwise' ;;
	*'Search not completed'* | *'too small'* | *'out of memory'*) got='was not searched whole' ;;
	*'errors: 0'*) got=holds ;;
	*) got='did not run' ;;
	esac
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out)
	if [[ $got == "$want" ]]; then
		got="ok: $got"
	else
		got="FAIL: $got"
		failed=1
	fi
	printf '%-28s %10s states %4d s  %s %s\n' "$got" "${states:-?}" $((SECONDS - start)) "$model" "$*"
	[[ $got == ok:* ]] || cat pan.out
}

check holds reader.pml -DS=2 -DU=1 -DK=2 -DGPS=3
check holds reader.pml -DS=1 -DU=2 -DK=1 -DGPS=3
check holds reader.pml -DS=2 -DU=1 -DK=2 -DGPS=3 -DFENCED
for m in NOFENCE EARLY JOIN OLD LATE NEST LAZY; do
	check 'uses a freed object' reader.pml -DS=1 -DU=1 -DK=1 -DGPS=1 -DMUT_$m
done

check holds guard.pml -DS=2 -DU=1 -DK=1 -DGPS=3
check holds guard.pml -DS=2 -DU=1 -DK=1 -DGPS=2 -DARM
check holds guard.pml -DS=2 -DU=1 -DK=1 -DGPS=3 -DFENCED
check holds guard.pml -DS=1 -DU=2 -DK=1 -DGPS=3
for m in NOFENCE EARLY JOIN ORDER; do
	check 'uses a freed object' guard.pml -DS=1 -DU=1 -DK=1 -DGPS=1 -DMUT_$m
done
check 'uses a freed object' guard.pml -DS=1 -DU=1 -DK=1 -DGPS=2 -DMUT_ONEPHASE
check 'uses a freed object' guard.pml -DS=1 -DU=1 -DK=1 -DGPS=1 -DMUT_PLAIN -DARM

check holds guard.pml -DLIVE -DS=1 -DK=0 -DGPS=3
for m in NOFLIP SOON; do
	check 'never ends' guard.pml -DLIVE -DS=1 -DK=0 -DGPS=2 -DMUT_$m
done

check holds claim.pml -DS=2 -DGPS=2
check holds claim.pml -DS=2 -DGPS=1 -DARM
check holds claim.pml -DS=1 -DR=3 -DGPS=2
check holds claim.pml -DS=1 -DW=2 -DGPS=2
check holds claim.pml -DS=1 -DRENUMBER
check holds claim.pml -DS=1 -DFIRST
for m in NOFENCE EARLY JOIN LATE OLD SKIP MARK BLIND TORN RENUMBER; do
	check 'uses a freed object' claim.pml -DS=1 -DGPS=1 -DMUT_$m
done
for m in FLAGFIRST OPENFIRST; do
	check 'uses a freed object' claim.pml -DS=1 -DGPS=1 -DFIRST -DMUT_$m
done
check 'sleeps for ever' claim.pml -DS=1 -DGPS=1 -DMUT_STORE
check holds claim.pml -DLIVE -DS=1 -DK=0
check 'never ends' claim.pml -DLIVE -DS=1 -DK=0 -DMUT_ZERO

check holds grace.pml
check holds grace.pml -DP1=StartPoll
check holds grace.pml -DP1=Call
check holds grace.pml -DR=1 -DP0=StartPoll -DP1=StartPoll
check holds grace.pml -DR=1 -DN=3 -DP1=Impatient -DP2=Expedited
check 'uses a freed object' grace.pml -DR=1 -DMUT_JOIN
check 'uses a freed object' grace.pml -DR=1 -DP1=Expedited -DMUT_NOMUTEX
for m in NOWAKE EARLYWAKE LATEJOIN NOLOOK; do
	check 'sleeps for ever' grace.pml -DR=1 -DMUT_$m
done
for m in ROUSEFIRST LOSTWISH; do
	check 'sleeps for ever' grace.pml -DR=1 -DP0=StartPoll -DP1=StartPoll -DMUT_$m
done
check 'sleeps for ever' grace.pml -DR=1 -DN=3 -DP0=StartPoll -DP1=StartPoll -DMUT_OVERWRITE
check holds grace.pml -DLIVE -DR=1 -DP1=Expedited
check holds grace.pml -DLIVE -DR=1 -DP1=Impatient
check 'never ends' grace.pml -DLIVE -DR=1 -DS=2 -DN=3 -DP2=Impatient -DMUT_SILENT

check holds barrier.pml -DSHARDS=1
check holds barrier.pml -DX=0
check holds barrier.pml -DC=1 -DX=2
check holds barrier.pml -DC=1 -DB=0 -DW=1
check holds barrier.pml -DSHARDS=1 -DX=0 -DAGAIN
check holds barrier.pml -DSHARDS=1 -DB=0 -DREUSE
check 'sleeps for ever' barrier.pml -DX=0 -DMUT_ONEPASS
check 'sleeps for ever' barrier.pml -DC=1 -DMUT_LOSTCLOSE
check 'sleeps for ever' barrier.pml -DC=1 -DMUT_SILENTCLOSE
check 'sleeps for ever' barrier.pml -DC=1 -DB=0 -DMUT_STEALTH
check 'sleeps for ever' barrier.pml -DC=1 -DX=0 -DMUT_LATEJOIN
check 'sleeps for ever' barrier.pml -DSHARDS=1 -DX=0 -DMUT_ONELEAVE
for m in STALE LATENUMBER; do
	check 'Barrier is early' barrier.pml -DSHARDS=1 -DX=0 -DMUT_$m
done
check 'Barrier is early' barrier.pml -DSHARDS=1 -DX=0 -DAGAIN -DMUT_EARLYFINISH
for m in LOSTWISH FORCE; do
	check 'Close leaves something' barrier.pml -DSHARDS=1 -DB=0 -DMUT_$m
done
check 'runs and is refused' barrier.pml -DSHARDS=1 -DB=0 -DMUT_LIE
check 'runs and is refused' barrier.pml -DSHARDS=1 -DB=0 -DREUSE -DMUT_VERDICT

check holds barrier.pml -DLAZY -DC=1
check holds barrier.pml -DLAZY -DB=0 -DX=0 -DF=1
check 'sleeps for ever' barrier.pml -DLAZY -DC=1 -DMUT_DEAF
check 'sleeps for ever' barrier.pml -DLAZY -DC=1 -DB=0 -DX=0 -DF=1 -DMUT_NOFLUSH
check 'sleeps for ever' barrier.pml -DLAZY -DB=0 -DX=0 -DF=1 -DMUT_LATEHASTY

if $big; then
	check holds reader.pml -DS=2 -DU=2 -DK=1 -DGPS=3
	check holds guard.pml -DS=2 -DU=2 -DK=1 -DGPS=2
	check holds guard.pml -DS=2 -DU=1 -DK=1 -DGPS=3 -DARM
	check holds claim.pml -DS=2 -DGPS=3
	check holds claim.pml -DS=2 -DGPS=2 -DARM
	check holds claim.pml -DS=2 -DW=2
	check holds claim.pml -DS=1 -DR=3 -DGPS=3
	check holds grace.pml -DLIVE -DR=1 -DS=2 -DN=3 -DP2=Impatient
	check holds barrier.pml
fi
exit $failed
