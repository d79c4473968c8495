#if REPLAY
    import SystemPackage
#endif

/// A target's read of bytes in memory; a promise that was broken ends the process, which is how fuzzers and valgrind hear of it.
private func read(_ target: FuzzTarget, _ bytes: UnsafeRawBufferPointer) {
    do throws(Broken) {
        try target.read(bytes)
    } catch {
        fatalError("\(target.name): \(error)")
    }
}

#if REPLAY
    /// Reads the files that are named, each by the reader that its folder is called after: `inlet-fuzz FILE…`.
    @main
    struct Driver {
        static func main() throws {
            for argument in CommandLine.arguments.dropFirst() {
                let path = FilePath(argument)
                let name = path.removingLastComponent().lastComponent?.string
                guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
                    fatalError("\(path): no reader is called \(name ?? "")")
                }
                let file = try FileDescriptor.open(path, .readOnly)
                let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
                let count = try file.closeAfter { try file.read(into: bytes) }
                // As long as it is: what reads beyond is seen.
                let exact = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
                exact.copyBytes(from: bytes[..<count])
                bytes.deallocate()
                read(target, UnsafeRawBufferPointer(exact))
                exact.deallocate()
            }
            print("\(CommandLine.arguments.count - 1) inputs read")
        }
    }
#else
    /// libFuzzer's entry for programs with a `main` of their own (llvm.org/docs/LibFuzzer.html, "Using libFuzzer as a library").
    @_silgen_name("LLVMFuzzerRunDriver")
    func runFuzzer(
        _ count: UnsafeMutablePointer<CInt>,
        _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
        _ one: @convention(c) (UnsafeRawPointer?, Int) -> CInt
    ) -> CInt

    /// libFuzzer's loop around one reader: `inlet-fuzz READER [libFuzzer's options and corpora]`; the readers without one.
    @main
    struct Driver {
        /// libFuzzer's callback has no context. Set once, before the first call.
        nonisolated(unsafe) static var target = FuzzTarget.all[0]

        static func main() {
            guard let found = FuzzTarget.all.first(where: { CommandLine.arguments.dropFirst().first == $0.name }) else {
                for target in FuzzTarget.all { print(target.name, target.longest) }
                return
            }
            target = found
            var count = CommandLine.argc - 1
            var arguments = Optional(CommandLine.unsafeArgv + 1)
            let ended = runFuzzer(&count, &arguments) { start, length in
                read(Driver.target, UnsafeRawBufferPointer(start: start, count: length))
                return 0
            }
            if ended != 0 { fatalError("libFuzzer ended with \(ended)") }
        }
    }
#endif
