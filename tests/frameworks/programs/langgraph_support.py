"""A support agent on LangGraph, as its users write it: traced by OpenInference, with no line for redfirst.

Run with requests as arguments it answers them. The model's address comes from OPENAI_BASE_URL, the exporter's from
OTEL_EXPORTER_OTLP_ENDPOINT. It cancels some orders twice: the shop answers with a confirmation, not with a receipt.
"""

import os
import sys

from langchain_core.messages import SystemMessage
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SHIPPED = {"A-42": "2031-05-04", "A-43": "2031-05-06"}


@tool
def verify_identity(customer_id: str) -> dict:
    """Check that the customer is who they say they are."""
    return {"verified": True, "customer_id": customer_id}


@tool
def get_order(order_id: str) -> dict:
    """Look an order up."""
    if order_id not in SHIPPED:
        raise ToolException(f"no order {order_id}")
    return {"status": "shipped", "order_id": order_id, "eta": SHIPPED[order_id]}


@tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order."""
    return {"order_id": order_id, "confirmation": f"C-{order_id}", "reason": reason}


get_order.handle_tool_error = True
TOOLS = {each.name: each for each in (verify_identity, get_order, cancel_order)}


def act(state: MessagesState) -> dict:
    """Do what the model asked for; a cancellation that gave no receipt is tried once more."""
    answers = []
    for call in state["messages"][-1].tool_calls:
        answer = TOOLS[call["name"]].invoke(call)
        if call["name"] == "cancel_order" and "receipt" not in answer.content:
            answer = TOOLS[call["name"]].invoke(call)
        answers.append(answer)
    return {"messages": answers}


def build():
    """The graph."""
    model = ChatOpenAI(model="scripted-1", temperature=0).bind_tools(list(TOOLS.values()))
    system = SystemMessage("You help customers of a bookshop.")

    def think(state: MessagesState) -> dict:
        return {"messages": [model.invoke([system, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", lambda state: "act" if state["messages"][-1].tool_calls else END)
    graph.add_edge("act", "think")
    return graph.compile(name="support_agent")


def make():
    """What answers a request."""
    graph = build()

    def answer(request: str) -> str:
        return graph.invoke({"messages": [{"role": "user", "content": request}]})["messages"][-1].content

    return answer


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
LangChainInstrumentor().instrument()

if __name__ == "__main__":
    os.environ.setdefault("OPENAI_API_KEY", "none")
    support = make()
    for asked in sys.argv[1:]:
        print(support(asked))
    provider.shutdown()
