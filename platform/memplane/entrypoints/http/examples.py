"""Examples that the OpenAPI document shows."""

from fastapi.openapi.models import Example

QUERY: dict[str, Example] = {
    "bullets": {
        "summary": "What a planner needs before it plans",
        "value": {
            "query": "deployment plan context",
            "categories": ["tasks", "projects"],
            "filters": {"user_id": "u1"},
            "top_k": 3,
            "budget_tokens": 512,
        },
    },
    "delta": {
        "summary": "With what changed in the thread since revision 41",
        "value": {"query": "release date", "filters": {"user_id": "u1"}, "thread_id": "t9", "since_rev": 41},
    },
}
TURN: dict[str, Example] = {
    "user": {
        "summary": "Something the user said",
        "value": {"user_id": "u1", "thread_id": "t9", "role": "user", "text": "The release moves to September."},
    },
}
MEMORY: dict[str, Example] = {
    "goal": {
        "summary": "A goal",
        "value": {
            "user_id": "u1",
            "category": "goals",
            "content": "Ana wants to ship version 1 by September.",
            "importance": 4,
            "thread_id": "t9",
        },
    },
}
CONTEXT: dict[str, Example] = {
    "before an answer": {
        "summary": "What the supervisor should know before it answers",
        "value": {
            "user_id": "u1",
            "thread_id": "t9",
            "message": "Can we still ship in September?",
            "since_rev": 41,
            "budget_tokens": 1500,
        },
    },
}
CHECKPOINT: dict[str, Example] = {
    "supervisor": {
        "summary": "What a supervisor stores after a step",
        "value": {
            "user_id": "u1",
            "memory": {"context": "Ana ships version 1 in September.", "revision": 44},
            "conversation": [{"role": "user", "text": "The release moves to September."}],
            "agents": {"planner": {"waiting_for": "the date"}},
        },
    },
}
_ONE, _OTHER = "01a1fef2-3d7c-72cb-8310-291b06c831c6", "01a1fef2-5b4e-757f-af1b-a8a0177f044d"
CONSENTS: dict[str, Example] = {
    "both": {
        "summary": "One approved, one rejected",
        "value": {
            "items": [
                {"id": _ONE, "decision": "approve"},
                {"id": _OTHER, "decision": "reject", "reason": "moved away"},
            ]
        },
    },
}
ACK: dict[str, Example] = {
    "turn": {"summary": "The user said yes in the chat", "value": {"turn_id": _OTHER}},
}
CONFLICT: dict[str, Example] = {
    "newer": {"summary": "Only the newer memory holds", "value": {"verdict": "newer"}},
}
