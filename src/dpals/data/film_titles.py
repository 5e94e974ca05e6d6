"""Readable names for simulated items: film titles whose kind is what the item is strongest in."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

KINDS = {
    "sci-fi": "Nebula Orbit Android Starship Eclipse Colony Signal Meteor Galaxy Horizon Quantum Voyager",
    "costume": "Manor Duchess Garden Governess Letter Estate Heiress Ballroom Vicar Cousin Season Inheritance",
    "noir": "Alley Detective Alibi Shadow Ransom Cigarette Informer Nightclub Verdict Stranger Motive Corpse",
    "musical": "Melody Chorus Carousel Waltz Serenade Orchestra Encore Trumpet Lullaby Dancer Cabaret Overture",
    "western": "Canyon Sheriff Saddle Outlaw Frontier Stagecoach Prairie Posse Mustang Saloon Homestead Gunsmith",
    "animation": "Penguin Teapot Dragon Balloon Squirrel Lighthouse Wizard Hedgehog Rocket Puddle Snowman Kite",
    "horror": "Crypt Scarecrow Attic Seance Coven Werewolf Asylum Mirror Graveyard Puppet Cellar Plague",
    "romance": "Honeymoon Sunset Bakery Postcard Wedding Summer Promise Bookshop Valentine Terrace Reunion Kiss",
}
ADJECTIVES = (
    "Crimson Silent Broken Golden Last Hidden Wandering Second Burning Quiet Lost Midnight Paper Velvet Hollow Distant "
    "Borrowed Restless Emerald Forgotten Winter Crooked Gentle Frozen Secret Wild Iron Painted Lonely Endless Silver "
    "Reckless Tender Shattered Amber Curious Stolen Drifting Faithful Savage"
)


def film_titles(factors: NDArray[np.floating]) -> list[str]:
    """A title for each row, no two the same; the kind says which of the first four columns is farthest from zero.

    Examples
    --------
    >>> film_titles(np.array([[2.0, 0, 0, 0.5], [-1.0, 0, 0, 0.5], [3.0, 0, 0, 0]]))
    ['Crimson Nebula (sci-fi)', 'Crimson Manor (costume)', 'Silent Orbit (sci-fi)']
    """
    strength = np.zeros((len(factors), len(KINDS)))
    first = factors[:, : len(KINDS) // 2]
    strength[:, : 2 * first.shape[1]] = np.stack([first, -first], axis=2).reshape(len(factors), 2 * first.shape[1])
    names = {kind: _names(nouns.split()) for kind, nouns in KINDS.items()}
    used = dict.fromkeys(KINDS, 0)
    titles = []
    for number in strength.argmax(axis=1):
        kind = list(KINDS)[number]
        sequel, place = divmod(used[kind], len(names[kind]))
        used[kind] += 1
        titles.append(f"{names[kind][place]}{f' {sequel + 1}' if sequel else ''} ({kind})")
    return titles


def _names(nouns: list[str]) -> list[str]:
    """Every adjective with every noun, so that neighbours share neither."""
    adjectives = ADJECTIVES.split()
    pairs = product(range(len(nouns)), range(len(adjectives)))
    return [f"{adjectives[column]} {nouns[(row + column) % len(nouns)]}" for row, column in pairs]
