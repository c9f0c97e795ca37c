"""The job `reconcile`, put together of its parts."""

from memplane.application.jobs.enrichment_job import Extractor
from memplane.application.jobs.reconciliation.graph_parts import Links, Mentions, OrphanEntities, Relations
from memplane.application.jobs.reconciliation.reconcile_job import Reconcile, Texts
from memplane.application.jobs.vector_records import Kind
from memplane.application.memories.gateway import Gateway
from memplane.application.ports import Policies, Storage


def repairs(storage: Storage, policies: Policies, gateway: Gateway, extractor: Extractor) -> Reconcile:
    """The job: texts first, for what is derived from them is compared by the vectors that they have then.

    Args:
        storage: where everything is.
        policies: say what no entity is made of, and which memories are near each other.
        gateway: embeds.
        extractor: finds names by rule.
    """
    return Reconcile(
        {
            **{str(kind): Texts(kind, storage, policies, gateway, extractor) for kind in Kind},
            "relations": Relations(storage),
            "mentions": Mentions(storage),
            "entities": OrphanEntities(storage),
            "links": Links(storage, policies),
        }
    )
