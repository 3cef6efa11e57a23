"""A live cluster behind the page: the same picture as the simulator's, of brokers that really run.

    watch.py      threads that look at the cluster while any page is open, and remember
    tail.py       the end of a list that grows for ever: what they remember. Pure
    ears.py       hears what the nodes of a cluster on this machine do
    hearsay.py    makes lines, messages under way and samples of it. Pure
    sight.py      what it saw as a picture, and whether that is well. Pure
    teller.py     what differs between two pictures, in sentences. Pure
    chronicle.py  what the brokers themselves tell in __cotidal_events, in sentences
    metadata.py   the metadata log of a cluster on this machine
    controls.py   kill, pause, cut: on a cluster that `cotidal up` runs
    clerks.py     threads that ask and change, so that no picture waits for an answer
    world.py      all of it as one world for each page: now, or at a moment that was seen

Nothing is asked of the cluster while no page is open.
"""
