/*
 * Both ends of a channel of librohc (https://rohc-lib.org, 2.4), as the test of packets that are
 * exchanged with another implementation needs them: crates/rohc/tests/peer.rs has the protocol.
 * `python benches/rohc_peer` compiles it and runs the test.
 *
 * The argument is the version of the profiles, 1 or 2. A request is its kind ('c', 'd' or 'f'), the
 * length of the data in two octets, and the data. An answer is a length of two octets and the data;
 * the length 65535 is a failure.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rohc/rohc.h>
#include <rohc/rohc_buf.h>
#include <rohc/rohc_comp.h>
#include <rohc/rohc_decomp.h>

#define MOST 65534
#define FAILED 65535

static const struct rohc_ts no_time = { 0, 0 };

/* Random numbers of the compressor: the same in each run. */
static int next_number(const struct rohc_comp *const comp, void *const state)
{
	uint32_t *const number = state;
	(void) comp;
	*number = *number * 1103515245 + 12345;
	return (*number >> 16) & 0x7fff;
}

static bool has_read(uint8_t *const bytes, const size_t length)
{
	return fread(bytes, 1, length, stdin) == length;
}

static void answer(const uint8_t *const bytes, const size_t length)
{
	putchar((int) (length >> 8 & 0xff));
	putchar((int) (length & 0xff));
	if(length != FAILED)
	{
		fwrite(bytes, 1, length, stdout);
	}
}

static void answer_buffer(const rohc_status_t status, const struct rohc_buf *const buffer)
{
	if(status == ROHC_STATUS_OK && buffer->len <= MOST)
	{
		answer(rohc_buf_data(*buffer), buffer->len);
	}
	else
	{
		answer(NULL, FAILED);
	}
}

/* Whether a packet of UDP may be RTP: both ends of the test use any ports. */
static bool may_be_rtp(const unsigned char *const ip, const unsigned char *const udp,
                       const unsigned char *const payload, const unsigned int length, void *const state)
{
	(void) ip;
	(void) udp;
	(void) state;
	return length >= 12 && payload[0] >> 6 == 2;
}

/* RFC 3095 for RTP, UDP and IP, RFC 6846 for TCP, and none. */
static bool has_version_1(struct rohc_comp *const comp, struct rohc_decomp *const decomp)
{
	return rohc_comp_enable_profiles(comp, ROHC_PROFILE_UNCOMPRESSED, ROHC_PROFILE_RTP, ROHC_PROFILE_UDP,
	                                 ROHC_PROFILE_IP, ROHC_PROFILE_TCP, -1) &&
	       rohc_decomp_enable_profiles(decomp, ROHC_PROFILE_UNCOMPRESSED, ROHC_PROFILE_RTP, ROHC_PROFILE_UDP,
	                                   ROHC_PROFILE_IP, ROHC_PROFILE_TCP, -1);
}

/* RFC 5225 for RTP, UDP and IP, and none. */
static bool has_version_2(struct rohc_comp *const comp, struct rohc_decomp *const decomp)
{
	return rohc_comp_enable_profiles(comp, ROHC_PROFILE_UNCOMPRESSED, ROHCv2_PROFILE_IP_UDP_RTP,
	                                 ROHCv2_PROFILE_IP_UDP, ROHCv2_PROFILE_IP, -1) &&
	       rohc_decomp_enable_profiles(decomp, ROHC_PROFILE_UNCOMPRESSED, ROHCv2_PROFILE_IP_UDP_RTP,
	                                   ROHCv2_PROFILE_IP_UDP, ROHCv2_PROFILE_IP, -1) &&
	       rohc_comp_set_rtp_detection_cb(comp, may_be_rtp, NULL);
}

int main(const int count, const char *const *const arguments)
{
	static uint8_t data[MOST + 1], out[MOST + 1], feedback[MOST + 1];
	uint32_t number = 1;
	const char *const version = count == 2 ? arguments[1] : "";
	struct rohc_comp *const comp = rohc_comp_new2(ROHC_SMALL_CID, ROHC_SMALL_CID_MAX, next_number, &number);
	struct rohc_decomp *const decomp = rohc_decomp_new2(ROHC_SMALL_CID, ROHC_SMALL_CID_MAX, ROHC_O_MODE);
	uint8_t head[3];

	if(strcmp(version, "1") != 0 && strcmp(version, "2") != 0)
	{
		fprintf(stderr, "rohc_peer: name the version of the profiles, 1 or 2\n");
		return 2;
	}
	if(comp == NULL || decomp == NULL || !(*version == '1' ? has_version_1 : has_version_2)(comp, decomp))
	{
		fprintf(stderr, "rohc_peer: the library has no channel with these profiles\n");
		return 1;
	}
	while(has_read(head, sizeof(head)))
	{
		const size_t length = (size_t) head[1] << 8 | head[2];
		struct rohc_buf packet, result = rohc_buf_init_empty(out, MOST);

		if(length > MOST || !has_read(data, length))
		{
			fprintf(stderr, "rohc_peer: a request of %zu bytes is not complete\n", length);
			return 1;
		}
		packet = (struct rohc_buf) rohc_buf_init_full(data, length, no_time);
		switch(head[0])
		{
			case 'c':
				answer_buffer(rohc_compress4(comp, packet, &result), &result);
				break;
			case 'd':
			{
				struct rohc_buf to_send = rohc_buf_init_empty(feedback, MOST);
				/* Feedback within packets, which the test does not send, is discarded. */
				const rohc_status_t status = rohc_decompress3(decomp, packet, &result, NULL, &to_send);
				answer_buffer(status, &result);
				answer_buffer(ROHC_STATUS_OK, &to_send);
				break;
			}
			case 'f':
				answer(NULL, rohc_comp_deliver_feedback2(comp, packet) ? 0 : FAILED);
				break;
			default:
				fprintf(stderr, "rohc_peer: there is no request '%c'\n", head[0]);
				return 1;
		}
		fflush(stdout);
	}
	rohc_comp_free(comp);
	rohc_decomp_free(decomp);
	return 0;
}
