/*
 * tipping_bucket.c - rain from contact closures.
 *
 * Part of the pulse input of the Otter 5.  A Gannet closes its reed contact
 * once for each tip of the bucket.  The contact bounces, so an edge that comes
 * too soon after the last accepted one is ignored.
 *
 * Pellworth Hydrometrics Co-operative, firmware group.
 */

#include <stdbool.h>
#include <stdint.h>

#define MICROMETRES_PER_TIP 100u /* 0.1 mm */
#define PULSE_LIMIT_PER_MIN 400u /* more than this raises E-28 */
#define WINDOW_MS 60000u

typedef struct {
    uint32_t last_edge_ms;   /* time of the last accepted edge */
    uint32_t window_start;   /* start of the running minute */
    uint32_t window_tips;    /* tips within the running minute */
    uint32_t total_tips;     /* tips since the start, may wrap */
    uint16_t debounce_ms;    /* 50 on delivery */
    bool     seen_any;
} bucket_t;

void bucket_init(bucket_t *b, uint16_t debounce_ms)
{
    b->last_edge_ms = 0;
    b->window_start = 0;
    b->window_tips = 0;
    b->total_tips = 0;
    b->debounce_ms = debounce_ms;
    b->seen_any = false;
}

/* Handle one falling edge; returns true if it was counted as a tip. */
bool bucket_edge(bucket_t *b, uint32_t now_ms)
{
    /* Unsigned subtraction stays right when the millisecond clock wraps. */
    if (b->seen_any && (uint32_t)(now_ms - b->last_edge_ms) < b->debounce_ms) {
        return false;
    }
    if ((uint32_t)(now_ms - b->window_start) >= WINDOW_MS) {
        b->window_start = now_ms;
        b->window_tips = 0;
    }
    b->seen_any = true;
    b->last_edge_ms = now_ms;
    b->window_tips++;
    b->total_tips++;
    return true;
}

/* True if the contact bounces or somebody plays with the bucket. */
bool bucket_implausible(const bucket_t *b)
{
    return b->window_tips > PULSE_LIMIT_PER_MIN;
}

/* Rain between two readings of the counter, in micrometres. */
uint32_t bucket_rain_um(uint32_t tips_before, uint32_t tips_now)
{
    return (uint32_t)(tips_now - tips_before) * MICROMETRES_PER_TIP;
}
