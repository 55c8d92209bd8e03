// A cell of ns-3 LENA, or its tables: `lena --KEY=VALUE...`, prints one line of JSON.
//
// --mode=tables: transport block sizes and the scheme of each CQI.
// --mode=schemes: what is selected at each SINR of the first `series` in `blocks` resource blocks.
// --mode=cell: a mobile with a full buffer at each SINR of `sinrs`, or at those of a `series`.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lte-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/spectrum-module.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr int SCHEMES = 29;
constexpr int CQIS = 16;
constexpr int LARGEST_BAND = 110;
constexpr uint16_t PAYLOAD = 1400;
constexpr double TRANSMIT_DBM = 30;
// Thermal noise and the noise figure of LteUePhy, 9 dB, in dBm/Hz.
constexpr double NOISE_DBM = -174 + 9;
constexpr double BLOCK_HERTZ = 180e3;

// What a mobile received after the warm-up.
struct Mobile {
    uint64_t payload = 0;
    // By the number of the transmission.
    std::vector<uint64_t> attempts = std::vector<uint64_t>(4), errors = std::vector<uint64_t>(4);
    // Of first transmissions.
    uint64_t block_bytes = 0;
    std::vector<uint64_t> schemes = std::vector<uint64_t>(SCHEMES);
    // The latest that the mobile measured, in dB.
    double sinr = 0;
};

std::vector<Mobile> mobiles;
std::vector<std::vector<double>> series;
double warm_up = 1;

bool IsMeasured() { return Simulator::Now().GetSeconds() >= warm_up; }

void BlockReceived(uint32_t number, PhyReceptionStatParameters block) {
    if (!IsMeasured()) {
        return;
    }
    Mobile& mobile = mobiles[number];
    ++mobile.attempts[block.m_rv];
    mobile.errors[block.m_rv] += !block.m_correctness;
    if (block.m_rv == 0) {
        mobile.block_bytes += block.m_size;
        ++mobile.schemes[block.m_mcs];
    }
}

void SinrMeasured(uint32_t number, uint16_t, uint16_t, double, double sinr, uint8_t) {
    mobiles[number].sinr = 10 * std::log10(sinr);
}

void PacketReceived(uint32_t number, Ptr<const Packet> packet, const Address&) {
    if (IsMeasured()) {
        mobiles[number].payload += packet->GetSize();
    }
}

template <typename Value>
std::string List(const std::vector<Value>& values) {
    std::ostringstream out;
    for (size_t index = 0; index < values.size(); ++index) {
        out << (index ? ", " : "[") << values[index];
    }
    return out.str() + "]";
}

std::vector<double> Numbers(const std::string& text) {
    std::vector<double> numbers;
    std::istringstream in(text);
    for (std::string number; std::getline(in, number, ',');) {
        numbers.push_back(std::stod(number));
    }
    return numbers;
}

template <typename Value>
void Set(const char* name, const Value& value) {
    Config::SetDefault(name, value);
}

void Tables() {
    Ptr<LteAmc> amc = CreateObject<LteAmc>();
    std::vector<std::string> sizes;
    for (int scheme = 0; scheme < SCHEMES; ++scheme) {
        std::vector<int> row;
        for (int blocks = 1; blocks <= LARGEST_BAND; ++blocks) {
            row.push_back(amc->GetDlTbSizeFromMcs(scheme, blocks));
        }
        sizes.push_back(List(row));
    }
    std::vector<int> schemes;
    std::vector<double> efficiencies;
    for (int cqi = 0; cqi < CQIS; ++cqi) {
        schemes.push_back(amc->GetMcsFromCqi(cqi));
        efficiencies.push_back(amc->GetSpectralEfficiencyFromCqi(cqi));
    }
    std::printf("{\"sizes\": %s, \"schemes\": %s, \"efficiencies\": %s}\n", List(sizes).c_str(), List(schemes).c_str(),
                List(efficiencies).c_str());
}

// Block error rate of a scheme in the first `blocks` resource blocks, as LENA's mobiles compute it.
double Errors(const Ptr<LteAmc>& amc, const SpectrumValue& sinr, int scheme, int blocks) {
    std::vector<int> map(blocks);
    std::iota(map.begin(), map.end(), 0);
    return LteMiErrorModel::GetTbDecodificationStats(sinr, map, amc->GetDlTbSizeFromMcs(scheme, blocks) / 8, scheme, {})
        .tbler;
}

// The last of the schemes, from the first, that has at most 10 % of its blocks in error.
int Highest(const Ptr<LteAmc>& amc, const SpectrumValue& sinr, int blocks) {
    int scheme = 0;
    while (scheme + 1 < SCHEMES && Errors(amc, sinr, scheme + 1, blocks) <= 0.1) {
        ++scheme;
    }
    return scheme;
}

void Schemes(const std::vector<double>& sinrs, int blocks, int group) {
    Ptr<LteAmc> mutual = CreateObject<LteAmc>(), formula = CreateObject<LteAmc>();
    mutual->SetAttribute("AmcModel", EnumValue(LteAmc::MiErrorModel));
    formula->SetAttribute("AmcModel", EnumValue(LteAmc::PiroEW2010));
    Ptr<SpectrumModel> model = LteSpectrumValueHelper::GetSpectrumModel(100, blocks);
    std::vector<int> cqi_mutual, cqi_formula, whole, part;
    std::vector<std::string> errors;
    for (double decibels : sinrs) {
        SpectrumValue sinr(model);
        sinr = std::pow(10, decibels / 10);
        cqi_mutual.push_back(mutual->CreateCqiFeedbacks(sinr, group)[0]);
        cqi_formula.push_back(formula->CreateCqiFeedbacks(sinr, group)[0]);
        whole.push_back(Highest(mutual, sinr, blocks));
        part.push_back(Highest(mutual, sinr, group));
        std::vector<double> each;
        for (int scheme = 0; scheme < SCHEMES; ++scheme) {
            each.push_back(Errors(mutual, sinr, scheme, blocks));
        }
        errors.push_back(List(each));
    }
    std::printf("{\"miesm\": %s, \"piro\": %s, \"whole\": %s, \"group\": %s, \"errors\": %s}\n",
                List(cqi_mutual).c_str(), List(cqi_formula).c_str(), List(whole).c_str(), List(part).c_str(),
                List(errors).c_str());
}

// The SINR of a mobile, without interference: the power of the station is spread over the band.
void SetSinr(Ptr<MatrixPropagationLossModel> down, Ptr<MobilityModel> station, Ptr<MobilityModel> mobile, double sinr,
             int blocks) {
    const double without_loss = TRANSMIT_DBM - 10 * std::log10(blocks * BLOCK_HERTZ) - NOISE_DBM;
    down->SetLoss(station, mobile, without_loss - sinr);
}

void Cell(const std::vector<double>& sinrs, int blocks, double duration, double rate) {
    const uint32_t count = sinrs.size();
    mobiles.resize(count);
    Set("ns3::LteSpectrumPhy::CtrlErrorModelEnabled", BooleanValue(false));
    Set("ns3::LteUePhy::EnableRlfDetection", BooleanValue(false));
    Set("ns3::LteEnbPhy::TxPower", DoubleValue(TRANSMIT_DBM));
    Set("ns3::LteHelper::UseIdealRrc", BooleanValue(true));
    Set("ns3::LteEnbRrc::EpsBearerToRlcMapping", EnumValue(LteEnbRrc::RLC_UM_ALWAYS));
    Set("ns3::LteEnbRrc::SrsPeriodicity", UintegerValue(320));
    Set("ns3::LteRlcUm::MaxTxBufferSize", UintegerValue(300000));
    Ptr<LteHelper> lte = CreateObject<LteHelper>();
    Ptr<PointToPointEpcHelper> core = CreateObject<PointToPointEpcHelper>();
    lte->SetEpcHelper(core);
    lte->SetSchedulerType("ns3::PfFfMacScheduler");
    lte->SetPathlossModelType(MatrixPropagationLossModel::GetTypeId());
    lte->SetEnbDeviceAttribute("DlBandwidth", UintegerValue(blocks));
    lte->SetEnbDeviceAttribute("UlBandwidth", UintegerValue(blocks));

    NodeContainer host, stations, users;
    host.Create(1);
    stations.Create(1);
    users.Create(count);
    InternetStackHelper internet;
    internet.Install(host);
    internet.Install(users);
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(stations);
    mobility.Install(users);
    NetDeviceContainer station = lte->InstallEnbDevice(stations), devices = lte->InstallUeDevice(users);
    auto matrix = [](Ptr<SpectrumChannel> channel) {
        return DynamicCast<MatrixPropagationLossModel>(channel->GetPropagationLossModel());
    };
    Ptr<MatrixPropagationLossModel> down = matrix(lte->GetDownlinkSpectrumChannel());
    matrix(lte->GetUplinkSpectrumChannel())->SetDefaultLoss(60);

    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    wire.SetChannelAttribute("Delay", StringValue("1ms"));
    NetDeviceContainer ends = wire.Install(core->GetPgwNode(), host.Get(0));
    Ipv4AddressHelper addresses("1.0.0.0", "255.0.0.0");
    addresses.Assign(ends);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(host.Get(0)->GetObject<Ipv4>())->AddNetworkRouteTo("7.0.0.0", "255.0.0.0", 1);
    Ipv4InterfaceContainer interfaces = core->AssignUeIpv4Address(devices);

    for (uint32_t number = 0; number < count; ++number) {
        routing.GetStaticRouting(users.Get(number)->GetObject<Ipv4>())
            ->SetDefaultRoute(core->GetUeDefaultGatewayAddress(), 1);
        Ptr<MobilityModel> from = stations.Get(0)->GetObject<MobilityModel>();
        Ptr<MobilityModel> to = users.Get(number)->GetObject<MobilityModel>();
        SetSinr(down, from, to, sinrs[number], blocks);
        for (size_t at = 0; number < series.size() && at < series[number].size(); ++at) {
            Simulator::Schedule(MilliSeconds(at), &SetSinr, down, from, to, series[number][at], blocks);
        }
        lte->Attach(devices.Get(number), station.Get(0));
        Ptr<LteUeNetDevice> device = DynamicCast<LteUeNetDevice>(devices.Get(number));
        device->GetPhy()->GetDownlinkSpectrumPhy()->TraceConnectWithoutContext(
            "DlPhyReception", MakeBoundCallback(&BlockReceived, number));
        device->GetPhy()->TraceConnectWithoutContext("ReportCurrentCellRsrpSinr",
                                                     MakeBoundCallback(&SinrMeasured, number));
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9000));
        ApplicationContainer received = sink.Install(users.Get(number));
        received.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&PacketReceived, number));
        OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(interfaces.GetAddress(number), 9000));
        source.SetConstantRate(DataRate(uint64_t(rate)), PAYLOAD);
        source.Install(host.Get(0)).Start(MilliSeconds(200));
    }
    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    std::vector<std::string> all;
    for (const Mobile& mobile : mobiles) {
        std::ostringstream out;
        out << "{\"payload\": " << mobile.payload << ", \"block_bytes\": " << mobile.block_bytes
            << ", \"attempts\": " << List(mobile.attempts) << ", \"errors\": " << List(mobile.errors)
            << ", \"schemes\": " << List(mobile.schemes)
            << ", \"sinr\": " << mobile.sinr << "}";
        all.push_back(out.str());
    }
    std::printf("{\"seconds\": %g, \"mobiles\": %s}\n", duration - warm_up, List(all).c_str());
    Simulator::Destroy();
}

}  // namespace

int main(int argc, char** argv) {
    std::string mode = "cell", sinrs = "10", amc = "miesm", file;
    double duration = 3, rate = 90e6;
    int blocks = 100, group = 4;
    uint32_t seed = 1;
    CommandLine command;
    command.AddValue("mode", "tables, schemes or cell", mode);
    command.AddValue("sinrs", "in dB, separated by commas", sinrs);
    command.AddValue("series", "file: a line for each mobile with its SINR of each ms", file);
    command.AddValue("amc", "miesm or piro", amc);
    command.AddValue("duration", "of the run in s", duration);
    command.AddValue("warm-up", "part of the run before the measurement, in s", warm_up);
    command.AddValue("rate", "of the datagrams of each mobile in bit/s", rate);
    command.AddValue("blocks", "resource blocks of the band", blocks);
    command.AddValue("group", "resource blocks of a group", group);
    command.AddValue("seed", "of random numbers", seed);
    command.Parse(argc, argv);
    RngSeedManager::SetSeed(seed);
    Set("ns3::LteAmc::AmcModel", EnumValue(amc == "piro" ? LteAmc::PiroEW2010 : LteAmc::MiErrorModel));
    if (!file.empty()) {
        std::ifstream in(file);
        for (std::string line; std::getline(in, line);) {
            series.push_back(Numbers(line));
        }
    }
    if (mode == "tables") {
        Tables();
    } else if (mode == "schemes") {
        Schemes(series.at(0), blocks, group);
    } else {
        Cell(Numbers(sinrs), blocks, duration, rate);
    }
}
