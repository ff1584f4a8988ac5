"""The service xtts.stage.v1.Stage of a plugin, as docs/plugin-protocol.md specifies it."""
import logging
import queue
import sys
import threading
import time

import grpc

from . import errors, stage_pb2 as pb
from .batch import KEY, Batch, Views
from .ring import Ring
from .stage import Config, Tensor, bind

ALIGN = 256  # bytes


class _Instance:
    """A configured stage of the pipeline."""

    def __init__(self, spec, stage, buckets, log):
        self.spec, self.stage, self.buckets, self.log = spec, stage, buckets, log
        self._views = {}

    def views(self, ring, bucket, slot):
        views = self._views.get((bucket, slot))
        if views is None:
            views = Views(self.spec, self.buckets[bucket], ring, slot * ring.slot_size)
            self._views[bucket, slot] = views
        return views


class Service:
    """The calls of the host. stages maps names to classes, or to functions that return a Stage."""

    def __init__(self, manifest, stages, ring_fd, log):
        self._manifest, self._stages, self._ring_fd, self._log = manifest, stages, ring_fd, log
        self._instances = self._layouts = self._ring = None
        self._changed, self._draining = threading.Condition(), False
        self._calls = self._failed = self._in_flight = 0

    def handlers(self):
        """The methods for a gRPC server."""
        service, methods = pb.DESCRIPTOR.services_by_name["Stage"], {}
        for m in service.methods:
            stream = m.name == "Process"
            make = grpc.stream_stream_rpc_method_handler if stream else grpc.unary_unary_rpc_method_handler
            methods[m.name] = make(getattr(self, m.name), getattr(pb, m.input_type.name).FromString,
                                   getattr(pb, m.output_type.name).SerializeToString)
        return grpc.method_handlers_generic_handler(service.full_name, methods)

    def Info(self, request, context):
        return pb.InfoResponse(id=self._manifest.id, version=self._manifest.version)

    def Configure(self, request, context):
        if self._instances is not None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Configure was called twice")
        layouts = [{t.name: Tensor(t) for t in layout.tensors} for layout in request.layouts]
        instances = []
        for instance in request.instances:
            log = _Named(self._log, {"instance": instance.name})
            try:
                instances.append(self._configure(instance, request, layouts, log))
            except BaseException as e:  # also SystemExit: without an answer the host waits
                mistake = isinstance(e, errors.UserError)
                if not mistake:
                    sys.stderr.write(errors.stack(e))  # a line each: the host shows the last ones, and ends
                code = grpc.StatusCode.INVALID_ARGUMENT if mistake else grpc.StatusCode.INTERNAL
                context.abort(code, f'instance "{instance.name}": {errors.message(e)}')
        self._layouts, self._instances = layouts, instances
        return pb.ConfigureResponse()

    def _configure(self, instance, request, layouts, log):
        spec = self._manifest.stages[instance.stage]
        buckets = bind(instance, layouts)
        stage = self._stages[instance.stage]()
        stage.configure(Config(spec, instance, request, buckets, log))
        return _Instance(spec, stage, buckets, log)

    def Attach(self, request, context):
        if self._instances is None or self._ring is not None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Attach is called once, after Configure")
        if request.slot_size % ALIGN:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"slots of {request.slot_size} bytes are not aligned")
        self._ring = Ring(self._ring_fd, request.slots, request.slot_size)
        return pb.AttachResponse()

    def Process(self, calls, context):
        if self._ring is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Process was called before Attach")
        accepted = queue.SimpleQueue()
        threading.Thread(target=self._accept, args=(calls, accepted), daemon=True).start()
        while (item := accepted.get()) is not None:
            yield self._work(*item)  # continues when the result has been sent
            with self._changed:
                self._in_flight -= 1
                if self._draining:
                    self._changed.notify_all()

    def _accept(self, calls, accepted):
        """Reads calls while a batch is processed, in a thread of its own."""
        try:
            for call in calls:
                with self._changed:
                    self._in_flight += 1
                    accepted.put((call, self._draining))
        except grpc.RpcError:
            pass  # the host has ended
        finally:
            accepted.put(None)

    def _work(self, call, draining):
        result, began = pb.Result(id=call.id), time.perf_counter_ns()
        try:
            if draining:
                raise RuntimeError("a call came after Drain")
            batch = self._batch(call)
            try:
                self._instances[call.instance].stage.process(batch)
            finally:  # before any answer: after that of an error, too, the host uses the slot again
                if self._ring.synchronize is not None:
                    self._ring.synchronize()
            for row, reason in batch.rejected():
                result.bad_rows.add(row=row, reason=reason)
            for row, text in batch.reported():
                result.draws.add(row=row, json=text)
        except BaseException as e:  # also SystemExit: a call without an answer is late
            result = pb.Result(id=call.id, error=self._failure(call, e))
            self._failed += 1
        self._calls += 1
        result.nanoseconds = time.perf_counter_ns() - began
        return result

    def _batch(self, call):
        for what, index, count in (("instance", call.instance, len(self._instances)),
                                   ("bucket", call.bucket, len(self._layouts)), ("slot", call.slot, self._ring.slots)):
            if index >= count:
                raise ValueError(f"call for {what} {index} of {count}")
        if len(call.row_keys) % KEY:
            raise ValueError(f"row keys of {len(call.row_keys)} bytes are not a multiple of {KEY}")
        return Batch(call, self._instances[call.instance].views(self._ring, call.bucket, call.slot))

    def _failure(self, call, e):
        """The error of a call, with the clips. The stack is in the host's log."""
        if isinstance(e, errors.UserError):
            return errors.message(e)
        log = self._instances[call.instance].log if call.instance < len(self._instances) else self._log
        log.info("exception in process", extra={"stack": errors.stack(e)})
        clips = ", ".join(filter(None, call.clip_ids))
        return f"{errors.message(e)}; clips {clips or 'unknown'}"

    def Drain(self, request, context):
        with self._changed:
            self._draining = True
            self._changed.wait_for(lambda: self._in_flight == 0)
        return pb.DrainResponse()

    def Health(self, request, context):
        return pb.HealthResponse(serving=True)

    def Stats(self, request, context):
        return pb.StatsResponse(calls=self._calls, failed=self._failed, in_flight=self._in_flight)


class _Named(logging.LoggerAdapter):
    """A logger whose entries have further fields, beside those of the call."""

    def process(self, message, kwargs):
        kwargs["extra"] = {**self.extra, **(kwargs.get("extra") or {})}
        return message, kwargs
