#!/bin/sh
# Every driver entry is captured, named as missed, or one of those that change nothing that a capture holds: a new one is
# noticed here. What a call may change: memory, modules, contexts, streams, executable graphs, launches.
set -u
sed -n 's/^ENTRY(\([A-Za-z0-9_]*\),.*/\1/p' "$ROOT/src/abi/entries.def" | sort -u > all
sed -n 's/^CAP(\([A-Za-z0-9_]*\)).*/\1/p' "$ROOT/src/inject/capture/entries.def" | sort > captured
[ "$(wc -l < all)" -gt 600 ] && [ "$(wc -l < captured)" -gt 200 ] || { echo "FAIL lists"; exit 1; }
uniq -d captured > twice
[ ! -s twice ] || { echo "FAIL entries in two rows:"; cat twice; exit 1; }
cat > harmless <<'L'
.*Get.*
.*Query.*
cuInit|cuDevice.*|cuOccupancy.*|cuProfiler.*|cuLogs.*|cuCoredump.*|cuCheckpoint.*|cuFlushGPUDirectRDMAWrites
cuGL.*|cuEGL.*|cuVDPAU.*|cuD3D.*|cuGraphics(Resource.*|Un.*)|cu(Import|Destroy|Signal|Wait)External.*
cuCtx(Attach|Create.*|FromGreenCtx|Pop.*|Push.*|Set(Current|Flags|CacheConfig|SharedMemConfig)|RecordEvent|WaitEvent|ResetPersistingL2Cache|Synchronize_v2|DisablePeerAccess)
cuGreenCtx.*|cuDevResource.*|cuDevSm.*|cuThreadExchangeStreamCaptureMode
cuEvent.*|cuUserObject.*|cuIpc(CloseMemHandle|OpenEventHandle)
cuFunc(IsLoaded|Load|SetBlockShape|SetCacheConfig|SetSharedMemConfig|SetSharedSize)|cuParamSet.*|cuKernelSetCacheConfig
cuLink.*|cuModuleEnumerateFunctions|cuLibraryEnumerateKernels|cuTensorMap.*
cuGraph(Add.*|Clone|Create|Destroy|DestroyNode|ConditionalHandleCreate|DebugDotPrint|Upload.*|Re.*Dependencies.*|Re.*UserObject|Node(FindInClone|SetParams))
cuGraph(BatchMemOp|EventRecord|EventWait|ExternalSemaphores.*|Host|Kernel|Memcpy|Memset)Node(Set.*|CopyAttributes)
cuGraphExec(EventRecord|EventWait|ExternalSemaphores.*|Host)NodeSet.*
cuMem(AddressFree|Advise.*|Create|Release|Export.*|Prefetch.*|Discard.*|Retain.*|Set(Access|MemPool))
cuMemPool(Create|Destroy|Export.*|ImportFromShareableHandle|Set.*|TrimTo)|cuMulticast(AddDevice|Create|Unbind)|cuPointerSetAttribute
cuMemcpyAtoH(Async.*)?|cuMemcpyDtoH(Async)?|cuMemHostUnregister
cuStream(AttachMemAsync.*|BeginCapture.*|EndCapture.*|IsCapturing.*|CopyAttributes.*|Create.*|SetAttribute.*|UpdateCapture.*|WaitEvent.*)
cuTexRef(Create|Destroy|Set(AddressMode|BorderColor|FilterMode|Flags|Format|Max.*|Mipmap(Filter|Level).*))
L
sed 's/.*/^(&)$/' harmless > patterns
comm -23 all captured | grep -Evf patterns > silent
if [ -s silent ]; then
    echo "FAIL entries that a capture neither holds nor names:"
    cat silent
    exit 1
fi
echo "ok   $(wc -l < all) entries"
