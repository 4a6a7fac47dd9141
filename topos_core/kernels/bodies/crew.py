"""How a crew of threads shares one job: slots are claimed from a ticket, the leader claims what nobody else has.

A ticket holds a job's number, how many slots it has, and the next free one, so that one comparison decides whether a
claim still belongs to the job that the claimer saw.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.atomic import count, exchange, give_way, observe, publish, relaxing
from topos_core.kernels.vocabulary.blocks import CREW
from topos_core.kernels.vocabulary.memory import call, reader, set_word

get = reader(CREW)
SLOT_BITS = 16
TICKET, DONE = 8 * CREW.index("ticket"), 8 * CREW.index("done")
SPINS = 2000  # pauses before a waiting leader lets others run


def kernel(host: Host, role: str) -> Any:
    """Makes `lead` (crew, slots), which runs a job to its end, or `follow` (crew, spins), which helps until idle."""
    relax = relaxing(host)
    mask, ticket_at, done_at, patience = (1 << SLOT_BITS) - 1, TICKET, DONE, SPINS

    def lead(crew, slots):  # type: ignore[no-untyped-def]
        set_word(crew + done_at, 0, 0)
        ticket = observe(crew + ticket_at)
        publish(crew + ticket_at, (((ticket >> 32) + 1) << 32) | (slots << 16))
        claimed = 1
        while claimed != 0:
            claimed = 0
            ticket = observe(crew + ticket_at)
            slot = ticket & mask
            if slot < slots:
                claimed = 1
                if exchange(crew + ticket_at, ticket, ticket + 1) != 0:
                    call(get(crew, "kernel"), get(crew, "block"), slot)
                    count(crew + done_at)
        waited = 0
        while observe(crew + done_at) < slots:
            relax()
            waited += 1
            if waited > patience:
                give_way()

    def follow(crew, spins):  # type: ignore[no-untyped-def]
        idle = 0
        while idle < spins:
            ticket = observe(crew + ticket_at)
            slot = ticket & mask
            if slot < (ticket >> 16) & mask:
                if exchange(crew + ticket_at, ticket, ticket + 1) != 0:
                    call(get(crew, "kernel"), get(crew, "block"), slot)
                    count(crew + done_at)
                idle = 0
            else:
                relax()
                idle += 1

    return lead if role == "lead" else follow
