import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

// What is tried by commands whose failure is somebody else's to tell.

extension FileLook {
    /// What is at `path`; nil where it cannot be looked at, which whoever opens it next finds out and says.
    static func glance(at path: FilePath) -> FileLook? {
        // As said above.
        try? look(at: path)
    }
}

extension LoadedConfig {
    /// The destination of this name; nil where there is none, or it cannot be made: 'inlet check' says why.
    func destination(_ name: String, _ factory: PipelineFactory) -> Destination? {
        // As said above.
        settings.destinations.first { $0.name == name }.flatMap { try? factory.make($0) }
    }
}

extension ThrowingTaskGroup where ChildTaskResult == Void, Failure == any Error {
    /// Waits for the first task to end, and then for the others, which are cancelled. Throws what the first one threw.
    mutating func endWithFirst() async throws {
        try await next()
        cancelAll()
        // The first end has been told; the others were told to end.
        while (try? await next()) != nil {}
    }
}
