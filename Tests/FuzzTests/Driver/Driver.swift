// libFuzzer's loop around one target: `inlet-fuzz TARGET [libFuzzer's options and corpora]`. Only packaging/bench/fuzz.sh builds it.

/// libFuzzer's entry for programs with a `main` of their own (llvm.org/docs/LibFuzzer.html, "Using libFuzzer as a library").
@_silgen_name("LLVMFuzzerRunDriver")
func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ one: @convention(c) (UnsafeRawPointer?, Int) -> CInt
) -> CInt

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
            do throws(Broken) {
                try Driver.target.read(UnsafeRawBufferPointer(start: start, count: length))
            } catch {
                fatalError("\(Driver.target.name): \(error)")
            }
            return 0
        }
        if ended != 0 { fatalError("libFuzzer ended with \(ended)") }
    }
}
