# One run of a scenario in ns-2: `ns ns2.tcl KEY VALUE...`, prints one line of JSON.
#   agent newreno|sack|linux   controller of Linux: reno|cubic   delayed 0|1
#   rate bit/s, delay s (one way), queue packets that wait, starts a list of s
#   packets of each file (0: endless), duration s, losses a file with packet numbers, seed
array set opt $argv
remove-all-packet-headers
add-packet-header IP TCP Flags
$defaultRNG seed $opt(seed)
set ns [new Simulator]

# Segments fill IP packets of 1500 bytes in all programs.
Agent/TCP set useHeaders_ true
Agent/TCP set window_ 10000000
Agent/TCP set maxrto_ 120
if {$opt(agent) eq "linux"} {
    Agent/TCP set packetSize_ 1448
    Agent/TCP set tcpip_base_hdr_size_ 52
    # Packet 0, the SYN, is part of the first window, and its acknowledgement widens it by one.
    Agent/TCP set windowInit_ 10
    Agent/TCP set tcpTick_ 0.001
    Agent/TCP set minrto_ 0.2
    Agent/TCP set rtxcur_init_ 1.0
    set class Agent/TCP/Linux
} else {
    # The settings of the profile ns2-newreno.
    Agent/TCP set packetSize_ 1460
    Agent/TCP set windowInit_ 2
    Agent/TCP set tcpTick_ 0.01
    Agent/TCP set minrto_ 1
    Agent/TCP set rtxcur_init_ 6.0
    Agent/TCP set precisionReduce_ false
    Agent/TCP set maxrto_ 60
    set class [expr {$opt(agent) eq "sack" ? "Agent/TCP/Sack1" : "Agent/TCP/Newreno"}]
}
set sink_class Agent/TCPSink[expr {$opt(agent) eq "newreno" ? "" : "/Sack1"}][expr {$opt(delayed) ? "/DelAck" : ""}]
Agent/TCPSink/DelAck set interval_ 100ms
Agent/TCPSink/Sack1/DelAck set interval_ 100ms

# senders -- a == bottleneck ==> b == losses ==> c -- receivers
proc link {from to rate delay queue} {
    global ns
    $ns simplex-link $from $to $rate $delay DropTail
    $ns queue-limit $from $to $queue
}
set a [$ns node]; set b [$ns node]; set c [$ns node]
# ns-2 counts the packet in transmission.
link $a $b $opt(rate) $opt(delay) [expr {$opt(queue) + 1}]
link $b $c 10Gb 0 10000000
link $c $a 10Gb $opt(delay) 10000000
set file [open $opt(losses)]
set losses [string trim [read $file]]
close $file
if {$losses ne ""} {
    set model [new ErrorModel/List]
    $model droplist $losses
    $model drop-target [new Agent/Null]
    $ns lossmodel $model $b $c
}

set open [llength $opt(starts)]
proc finished {number} {
    global ns opt ended open
    if {[info exists ended($number)]} return
    set ended($number) [expr {[$ns now] - [lindex $opt(starts) $number]}]
    incr open -1
    if {$open == 0} report
}
Agent/TCP instproc done {} {
    $self instvar number
    finished $number
}
for {set i 0} {$i < [llength $opt(starts)]} {incr i} {
    set s [$ns node]; set d [$ns node]
    link $s $a 10Gb 0 10000000
    link $a $s 10Gb 0 10000000
    link $c $d 10Gb 0 10000000
    link $d $c 10Gb 0 10000000
    set tcp($i) [new $class]; set sink($i) [new $sink_class]
    $tcp($i) set number $i
    $ns attach-agent $s $tcp($i)
    $ns attach-agent $d $sink($i)
    $ns connect $tcp($i) $sink($i)
    if {$opt(agent) eq "linux"} {$ns at 0 "$tcp($i) select_ca $opt(controller)"}
    # CUBIC reduces the window to 0.7 today (RFC 9438): 717 of 1024. In 2.6.16 it is 0.8.
    if {$opt(controller) eq "cubic"} {$ns at 0.000001 "$tcp($i) set_ca_param cubic beta 717"}
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    # The first packet, number 0, stands for the SYN.
    set action [expr {$opt(packets) ? "produce $opt(packets)" : "start"}]
    $ns at [lindex $opt(starts) $i] "$ftp $action"
}

proc report {} {
    global ns opt tcp sink ended
    set delivered {}; set times {}; set sent 0; set repeated 0; set timeouts 0
    for {set i 0} {$i < [llength $opt(starts)]} {incr i} {
        # The sink counts whole packets, and 40 or 52 bytes of the first.
        lappend delivered [expr {[$sink($i) set bytes_] / 1500 * [$tcp($i) set packetSize_]}]
        lappend times [expr {[info exists ended($i)] ? $ended($i) : "null"}]
        incr sent [$tcp($i) set ndatapack_]
        incr repeated [$tcp($i) set nrexmitpack_]
        incr timeouts [$tcp($i) set nrexmit_]
    }
    puts "{\"delivered\": \[[join $delivered ", "]\], \"times\": \[[join $times ", "]\],\
        \"sent\": $sent, \"repeated\": $repeated, \"timeouts\": $timeouts}"
    exit 0
}
$ns at $opt(duration) report
$ns run
