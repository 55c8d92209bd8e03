// One run of a scenario in ns-3: `ns3 --KEY=VALUE...`, prints one line of JSON.
// Rates in bit/s, times in s, `starts` separated by commas; `packets` 0 is a long flow.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t SEGMENT = 1448;
constexpr uint32_t PACKET = 1500;
// The header of PointToPointNetDevice.
constexpr uint32_t PPP = 2;

// Loses the packets with these numbers. The list of ns-3 itself is searched in full for every
// packet.
class LossList : public ErrorModel {
  public:
    explicit LossList(const std::string& path) {
        std::ifstream file(path);
        for (uint64_t number; file >> number;) {
            numbers_.push_back(number);
        }
    }

  private:
    bool DoCorrupt(Ptr<Packet>) override {
        return std::binary_search(numbers_.begin(), numbers_.end(), packet_++);
    }
    void DoReset() override { packet_ = 0; }

    std::vector<uint64_t> numbers_;
    uint64_t packet_ = 0;
};

struct Flow {
    double start;
    uint64_t delivered = 0;
    double ended = -1;
    SequenceNumber32 highest{0};
    uint64_t sent = 0;
    uint64_t repeated = 0;
    uint64_t timeouts = 0;
};

std::vector<Flow> flows;
uint64_t file_size = 0;
size_t unfinished = 0;

void Received(uint32_t number, Ptr<const Packet> packet, const Address&) {
    Flow& flow = flows[number];
    flow.delivered += packet->GetSize();
    if (file_size && flow.ended < 0 && flow.delivered >= file_size) {
        flow.ended = Simulator::Now().GetSeconds() - flow.start;
        if (--unfinished == 0) {
            Simulator::Stop();
        }
    }
}

void Sent(uint32_t number, Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) {
    Ptr<Packet> copy = packet->Copy();
    Ipv4Header ip;
    TcpHeader tcp;
    copy->RemoveHeader(ip);
    copy->RemoveHeader(tcp);
    if (copy->GetSize() == 0) {
        return;
    }
    Flow& flow = flows[number];
    ++flow.sent;
    if (flow.sent > 1 && tcp.GetSequenceNumber() < flow.highest) {
        ++flow.repeated;
    } else {
        flow.highest = tcp.GetSequenceNumber() + copy->GetSize();
    }
}

// A time-out of a connection that is not yet in the state of one.
void StateChanged(uint32_t number, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state) {
    flows[number].timeouts += state == TcpSocketState::CA_LOSS;
}

void Observe(uint32_t number, Ptr<Node> sender) {
    const std::string sockets = "/$ns3::TcpL4Protocol/SocketList/*/CongState";
    Config::ConnectWithoutContext("/NodeList/" + std::to_string(sender->GetId()) + sockets,
                                  MakeBoundCallback(&StateChanged, number));
}

template <typename Value>
void Set(const char* name, Value value) {
    Config::SetDefault(name, value);
}

}  // namespace

int main(int argc, char** argv) {
    std::string tcp = "TcpCubic", starts = "0", losses, target, interval;
    double rate = 1e6, delay = 0.01, duration = 10;
    uint32_t queue = 100, packets = 0, seed = 1;
    bool sack = true, ecn = false, delayed = true;
    CommandLine command;
    command.AddValue("tcp", "TcpLinuxReno, TcpNewReno or TcpCubic", tcp);
    command.AddValue("starts", "of each flow", starts);
    command.AddValue("losses", "file with the numbers of lost packets", losses);
    command.AddValue("target", "of CoDel; none: drop-tail", target);
    command.AddValue("interval", "of CoDel", interval);
    command.AddValue("rate", "of the bottleneck", rate);
    command.AddValue("delay", "one way", delay);
    command.AddValue("duration", "at most", duration);
    command.AddValue("queue", "packets that wait", queue);
    command.AddValue("packets", "of a file", packets);
    command.AddValue("seed", "of random numbers", seed);
    command.AddValue("sack", "", sack);
    command.AddValue("ecn", "", ecn);
    command.AddValue("delayed", "acknowledgements", delayed);
    command.Parse(argc, argv);
    RngSeedManager::SetSeed(seed);

    std::istringstream list(starts);
    for (std::string start; std::getline(list, start, ',');) {
        flows.push_back({std::stod(start)});
    }
    const uint32_t count = flows.size();
    unfinished = count;
    file_size = uint64_t(packets) * SEGMENT;

    // The largest window that is of use: a full path twice, so that slow start can overshoot.
    double window = 4 * (rate * 2 * delay / 8 + double(queue) * PACKET) + 65536;
    if (file_size) {
        window = std::min(window, double(file_size) + 65536);
    }
    Set("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + tcp));
    Set("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Set("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Set("ns3::TcpSocket::SndBufSize", UintegerValue(uint32_t(window)));
    Set("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 29));
    Set("ns3::TcpSocket::DelAckCount", UintegerValue(delayed ? 2 : 1));
    Set("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(100)));
    Set("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Set("ns3::TcpSocket::ConnCount", UintegerValue(20));
    Set("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Set("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Set("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Set("ns3::TcpSocketBase::UseEcn", StringValue(ecn ? "On" : "Off"));
    Set("ns3::TcpCubic::HyStart", BooleanValue(false));
    Set("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(1)));

    NodeContainer routers, senders, receivers;
    routers.Create(2);
    senders.Create(count);
    receivers.Create(count);
    InternetStackHelper stack;
    stack.Install(routers);
    stack.Install(senders);
    stack.Install(receivers);

    PointToPointHelper middle, access;
    middle.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate * (PACKET + PPP) / PACKET))));
    middle.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    const std::string waiting = std::to_string(queue) + "p";
    // With a queue discipline the device still holds one packet.
    middle.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(target.empty() ? waiting : "1p"));
    access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    access.SetChannelAttribute("Delay", StringValue("0s"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));

    Ipv4AddressHelper addresses;
    TrafficControlHelper control;
    NetDeviceContainer bottleneck = middle.Install(routers);
    bottleneck.Get(1)->SetAttribute("DataRate", StringValue("10Gbps"));
    bottleneck.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(Create<LossList>(losses)));
    if (!target.empty()) {
        TrafficControlHelper codel;
        // RFC 8289 does not drop the last packet that waits.
        codel.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue(waiting), "Target", StringValue(target),
                               "Interval", StringValue(interval), "MinBytes", UintegerValue(PACKET + 1), "UseEcn",
                               BooleanValue(ecn));
        codel.Install(bottleneck.Get(0));
    }
    addresses.SetBase("10.0.0.0", "255.255.255.252");
    addresses.Assign(bottleneck);
    if (target.empty()) {
        control.Uninstall(bottleneck);
    } else {
        control.Uninstall(bottleneck.Get(1));
    }
    addresses.SetBase("10.1.0.0", "255.255.255.252");
    Ipv4StaticRoutingHelper routing;
    auto route = [&](Ptr<Node> node, Ipv4Address next) {
        routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(next, 1);
    };
    for (uint32_t number = 0; number < count; ++number) {
        NetDeviceContainer left = access.Install(senders.Get(number), routers.Get(0));
        Ipv4InterfaceContainer left_addresses = addresses.Assign(left);
        addresses.NewNetwork();
        NetDeviceContainer right = access.Install(routers.Get(1), receivers.Get(number));
        Ipv4InterfaceContainer right_addresses = addresses.Assign(right);
        addresses.NewNetwork();
        control.Uninstall(left);
        control.Uninstall(right);
        route(senders.Get(number), left_addresses.GetAddress(1));
        route(receivers.Get(number), right_addresses.GetAddress(0));

        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9000));
        ApplicationContainer received = sink.Install(receivers.Get(number));
        received.Start(Seconds(0));
        received.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, number));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(right_addresses.GetAddress(1), 9000));
        bulk.SetAttribute("SendSize", UintegerValue(SEGMENT));
        bulk.SetAttribute("MaxBytes", UintegerValue(file_size));
        bulk.Install(senders.Get(number)).Start(Seconds(flows[number].start));
        Simulator::Schedule(Seconds(flows[number].start) + MicroSeconds(1), &Observe, number, senders.Get(number));
        senders.Get(number)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext(
            "Tx", MakeBoundCallback(&Sent, number));
    }
    route(routers.Get(0), Ipv4Address("10.0.0.2"));
    route(routers.Get(1), Ipv4Address("10.0.0.1"));

    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    std::string delivered, times;
    uint64_t sent = 0, repeated = 0, timeouts = 0;
    for (const Flow& flow : flows) {
        const char* comma = delivered.empty() ? "" : ", ";
        delivered += comma + std::to_string(flow.delivered);
        times += comma + (flow.ended < 0 ? "null" : std::to_string(flow.ended));
        sent += flow.sent;
        repeated += flow.repeated;
        timeouts += flow.timeouts;
    }
    std::printf("{\"delivered\": [%s], \"times\": [%s], \"sent\": %lu, \"repeated\": %lu, \"timeouts\": %lu}\n",
                delivered.c_str(), times.c_str(), (unsigned long)sent, (unsigned long)repeated,
                (unsigned long)timeouts);
    Simulator::Destroy();
}
