/*
 * A download with picoquic over a link in virtual time. It prints its figures as one JSON object.
 *
 *   peer FOLDER RATE DELAY QUEUE LOSS BYTES SEED ALGORITHM OPTIONS [TRACE]
 *
 * FOLDER is picoquic's source, for the certificate; RATE in bit/s, DELAY of one way in µs, QUEUE in
 * packets, LOSS a probability, OPTIONS those of picoquic's controller. The link is picoquic's, with
 * an admission that has the rules of airpath's: a packet waits in a queue of QUEUE packets, is sent
 * at RATE, and is then lost or arrives after DELAY. Only packets towards the client are lost.
 * TRACE, if given, is a file for a line of each data packet: time, wait, window, rate.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picoquic.h"
#include "picoquic_utils.h"

#define HEADERS 28 /* of IPv4 and UDP */
#define DATA 1000  /* larger packets carry data */
#define STEADY 5000000 /* from this time on after the first data packet, in µs */
#define LONGEST 600000000

typedef struct {
    picoquictest_aqm_t super;
    double rate; /* bits per ns */
    size_t limit;
    double loss;
    uint64_t random;
    uint64_t free; /* end of the last transmission, in ns */
    uint64_t* starts; /* of waiting packets, a ring */
    size_t first, waiting, room;
    int is_down;
} bottleneck_t;

typedef struct {
    uint64_t now;
    picoquic_quic_t* ends[2];
    picoquictest_sim_link_t* links[2];
    struct sockaddr_in addresses[2];
    picoquic_cnx_t* server;
    uint64_t target, sent_bytes, received;
    int done;
    uint64_t begin, end; /* of the data, in µs */
    uint64_t sent, dropped, lost, wire;
    uint64_t* delays;
    uint64_t* entered;
    size_t delivered, room;
    FILE* trace;
} download_t;

static download_t d;

/* SplitMix64. */
static double uniform(uint64_t* state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static void submit(picoquictest_aqm_t* self, picoquictest_sim_link_t* link, picoquictest_sim_packet_t* packet,
    uint64_t now_us)
{
    bottleneck_t* b = (bottleneck_t*)self;
    uint64_t now = now_us * 1000;
    int is_data = b->is_down && packet->length > DATA && d.sent_bytes > 0;

    while (b->waiting > 0 && b->starts[b->first % b->room] <= now) {
        b->first++;
        b->waiting--;
    }
    uint64_t start = (b->free > now) ? b->free : now;
    if (is_data) {
        if (d.begin == 0) {
            d.begin = now_us;
        }
        d.sent++;
    }
    if (start > now && b->waiting >= b->limit) {
        d.dropped += is_data;
        free(packet);
        return;
    }
    if (start > now) {
        b->starts[(b->first + b->waiting) % b->room] = start;
        b->waiting++;
    }
    b->free = start + (uint64_t)((double)(packet->length + HEADERS) * 8 / b->rate);
    if (b->loss > 0 && uniform(&b->random) < b->loss) {
        d.lost += is_data;
        free(packet);
        return;
    }
    packet->next_packet = NULL;
    packet->arrival_time = (b->free + 999) / 1000 + link->microsec_latency;
    if (link->last_packet == NULL) {
        link->first_packet = packet;
    } else {
        link->last_packet->next_packet = packet;
    }
    link->last_packet = packet;
    if (is_data) {
        if (d.delivered == d.room) {
            d.room = d.room ? 2 * d.room : 65536;
            d.delays = realloc(d.delays, d.room * sizeof(uint64_t));
            d.entered = realloc(d.entered, d.room * sizeof(uint64_t));
        }
        d.entered[d.delivered] = now_us;
        d.delays[d.delivered++] = start - now;
        d.wire += packet->length + HEADERS;
        d.end = packet->arrival_time;
        if (d.trace != NULL) {
            picoquic_path_quality_t q;
            picoquic_get_default_path_quality(d.server, &q);
            fprintf(d.trace, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%zu\n",
                now_us - d.begin, (start - now) / 1000, q.cwin, q.pacing_rate, q.bytes_in_transit, q.lost,
                packet->length);
        }
    }
}

static void nothing(picoquictest_aqm_t* self, picoquictest_sim_link_t* link, uint64_t now)
{
    (void)self;
    (void)link;
    (void)now;
}

static void release(picoquictest_aqm_t* self, picoquictest_sim_link_t* link)
{
    (void)self;
    link->aqm_state = NULL;
}

static void limit(picoquictest_sim_link_t* link, bottleneck_t* b, double rate, size_t queue, double loss, uint64_t seed)
{
    memset(b, 0, sizeof(*b));
    b->super.submit = submit;
    b->super.reset = nothing;
    b->super.release = release;
    b->rate = rate / 1e9;
    b->limit = queue;
    b->loss = loss;
    b->random = seed;
    b->room = queue + 1;
    b->starts = calloc(b->room, sizeof(uint64_t));
    link->aqm_state = &b->super;
}

static int serve(picoquic_cnx_t* cnx, uint64_t stream, uint8_t* bytes, size_t length, picoquic_call_back_event_t event,
    void* context, void* stream_context)
{
    (void)context;
    (void)stream_context;
    if (event == picoquic_callback_stream_fin) {
        d.server = cnx;
        d.sent_bytes = 1;
        return picoquic_mark_active_stream(cnx, stream, 1, NULL);
    }
    if (event == picoquic_callback_prepare_to_send) {
        uint64_t left = d.target + 1 - d.sent_bytes;
        size_t now = (left < length) ? (size_t)left : length;
        uint8_t* buffer = picoquic_provide_stream_data_buffer(bytes, now, now == left, now < left);
        if (buffer == NULL) {
            return -1;
        }
        memset(buffer, 0, now);
        d.sent_bytes += now;
    }
    return 0;
}

static int receive(picoquic_cnx_t* cnx, uint64_t stream, uint8_t* bytes, size_t length, picoquic_call_back_event_t event,
    void* context, void* stream_context)
{
    (void)cnx;
    (void)stream;
    (void)bytes;
    (void)context;
    (void)stream_context;
    if (event == picoquic_callback_stream_data || event == picoquic_callback_stream_fin) {
        d.received += length;
        d.done |= event == picoquic_callback_stream_fin;
    }
    return 0;
}

static int by_size(const void* a, const void* b)
{
    uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
    return (x > y) - (x < y);
}

static void figures(size_t from, const char* name)
{
    size_t n = d.delivered - from;
    double sum = 0;
    uint64_t* sorted = malloc((n + 1) * sizeof(uint64_t));
    memcpy(sorted, d.delays + from, n * sizeof(uint64_t));
    qsort(sorted, n, sizeof(uint64_t), by_size);
    for (size_t i = 0; i < n; i++) {
        sum += (double)sorted[i];
    }
    printf(", \"%s_mean\": %.9f, \"%s_p95\": %.9f", name, n ? sum / (double)n / 1e9 : 0, name,
        n ? (double)sorted[(size_t)(0.95 * (double)(n - 1))] / 1e9 : 0);
    free(sorted);
}

int main(int argc, char** argv)
{
    if (argc < 10) {
        fprintf(stderr, "peer FOLDER RATE DELAY QUEUE LOSS BYTES SEED ALGORITHM OPTIONS [TRACE]\n");
        return 2;
    }
    char certificate[512], key[512];
    double rate = atof(argv[2]);
    uint64_t delay = strtoull(argv[3], NULL, 10);
    size_t queue = strtoull(argv[4], NULL, 10);
    double loss = atof(argv[5]);
    d.target = strtoull(argv[6], NULL, 10);
    uint64_t seed = strtoull(argv[7], NULL, 10);
    char options[128];
    snprintf(options, sizeof(options), "%sS%" PRIu64 ":", argv[9], seed * 7919);
    d.trace = (argc > 10) ? fopen(argv[10], "w") : NULL;

    picoquic_register_all_congestion_control_algorithms();
    const picoquic_congestion_algorithm_t* algorithm = picoquic_get_congestion_algorithm(argv[8]);
    if (algorithm == NULL) {
        fprintf(stderr, "no such algorithm: %s\n", argv[8]);
        return 2;
    }
    snprintf(certificate, sizeof(certificate), "%s/certs/cert.pem", argv[1]);
    snprintf(key, sizeof(key), "%s/certs/key.pem", argv[1]);
    for (int i = 0; i < 2; i++) {
        d.addresses[i].sin_family = AF_INET;
        d.addresses[i].sin_port = htons(1234);
        d.addresses[i].sin_addr.s_addr = htonl(0x0A000001 + (uint32_t)i);
    }
    d.ends[0] = picoquic_create(4, certificate, key, NULL, "bulk", serve, NULL, NULL, NULL, NULL, d.now, &d.now, NULL,
        NULL, 0);
    d.ends[1] = picoquic_create(4, NULL, NULL, NULL, "bulk", receive, NULL, NULL, NULL, NULL, d.now, &d.now, NULL, NULL,
        0);
    if (d.ends[0] == NULL || d.ends[1] == NULL) {
        fprintf(stderr, "no QUIC contexts: is %s picoquic's source?\n", argv[1]);
        return 2;
    }
    picoquic_set_null_verifier(d.ends[1]);
    picoquic_set_packet_train_mode(d.ends[0], getenv("TRAIN") != NULL);
    for (int i = 0; i < 2; i++) {
        picoquic_set_default_pmtud_policy(d.ends[i], picoquic_pmtud_required);
        picoquic_set_default_congestion_algorithm_ex(d.ends[i], algorithm, options);
    }
    /* Link 0 leads to the server, link 1 to the client. */
    bottleneck_t up, down;
    for (int i = 0; i < 2; i++) {
        d.links[i] = picoquictest_sim_link_create(rate / 1e9, delay, NULL, 0, d.now);
    }
    limit(d.links[0], &up, rate, 100000, 0, 0);
    limit(d.links[1], &down, rate, queue, loss, seed * 104729);
    down.is_down = 1;

    picoquic_cnx_t* cnx = picoquic_create_cnx(d.ends[1], picoquic_null_connection_id, picoquic_null_connection_id,
        (struct sockaddr*)&d.addresses[0], d.now, 0, "test.example.com", "bulk", 1);
    picoquic_set_callback(cnx, receive, NULL);
    if (picoquic_add_to_stream(cnx, 0, (const uint8_t*)"get", 3, 1) != 0 || picoquic_start_client_cnx(cnx) != 0) {
        fprintf(stderr, "cannot start\n");
        return 1;
    }
    while (!d.done && d.now < LONGEST) {
        uint64_t next = UINT64_MAX;
        int end = 0, is_arrival = 0;
        for (int i = 0; i < 2; i++) {
            uint64_t arrival = picoquictest_sim_link_next_arrival(d.links[i], UINT64_MAX);
            if (arrival < next) {
                next = arrival;
                end = i;
                is_arrival = 1;
            }
        }
        for (int i = 0; i < 2; i++) {
            uint64_t wake = picoquic_get_next_wake_time(d.ends[i], d.now);
            if (wake < next) {
                next = wake;
                end = i;
                is_arrival = 0;
            }
        }
        if (next == UINT64_MAX) {
            break;
        }
        d.now = (next > d.now) ? next : d.now;
        if (is_arrival) {
            picoquictest_sim_packet_t* packet = picoquictest_sim_link_dequeue(d.links[end], d.now);
            picoquic_cnx_t* first = NULL;
            picoquic_incoming_packet_ex(d.ends[end], packet->bytes, packet->length,
                (struct sockaddr*)&packet->addr_from, (struct sockaddr*)&packet->addr_to, 0, 0, &first, d.now);
            free(packet);
        } else {
            picoquictest_sim_packet_t* packet = picoquictest_sim_link_create_packet();
            picoquic_cnx_t* last = NULL;
            int interface = 0;
            int failed = picoquic_prepare_next_packet_ex(d.ends[end], d.now, packet->bytes, sizeof(packet->bytes),
                &packet->length, &packet->addr_to, &packet->addr_from, &interface, NULL, &last, NULL);
            if (failed != 0 || packet->length == 0) {
                free(packet);
                continue;
            }
            if (packet->addr_from.ss_family == 0) {
                picoquic_store_addr(&packet->addr_from, (struct sockaddr*)&d.addresses[end]);
            }
            picoquictest_sim_link_submit(d.links[1 - end], packet, d.now);
        }
    }
    if (!d.done) {
        fprintf(stderr, "unfinished after %.3f s: %" PRIu64 " of %" PRIu64 " bytes\n", (double)d.now / 1e6, d.received,
            d.target);
        return 1;
    }
    picoquic_path_quality_t quality;
    picoquic_get_default_path_quality(d.server, &quality);
    size_t steady = 0;
    while (steady < d.delivered && d.entered[steady] < d.begin + STEADY) {
        steady++;
    }
    printf("{\"duration\": %.6f, \"sent\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"declared\": %" PRIu64 ", \"spurious\": %" PRIu64 ", \"delivered\": %zu, \"wire\": %" PRIu64
           ", \"min_rtt\": %.6f",
        (double)(d.end - d.begin) / 1e6, d.sent, d.dropped, d.lost, quality.lost, quality.spurious_losses, d.delivered,
        d.wire, (double)quality.rtt_min / 1e6);
    figures(0, "delay");
    figures(steady, "steady");
    printf(", \"steady_packets\": %zu, \"steady_time\": %.6f}\n", d.delivered - steady,
        (d.delivered > steady) ? (double)(d.entered[d.delivered - 1] - d.entered[steady]) / 1e6 : 0);
    return 0;
}
