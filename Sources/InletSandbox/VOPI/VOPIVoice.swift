import InletCore

/// How a generation tells of a job.
struct VOPIVoice: Sendable {
    let generation: VOPIRules.Generation
    let progress: VOPIRules.Progress

    init(_ rules: VOPIRules) {
        generation = rules.generation
        progress = rules.progress ?? (rules.generation == .bearer ? .hidden : .status)
    }

    /// The answer to POST `/jobs`.
    func created(_ job: VOPIJob) -> SandboxJSON {
        [
            "id": .string(job.id), "status": "pending", "videoUrl": .string(job.videoURL), "config": config(job),
            "createdAt": .string(job.created.rfc3339),
        ]
    }

    /// A line of the list.
    func line(_ job: VOPIJob) -> SandboxJSON {
        .object(common(job).merging(["videoUrl": .string(job.videoURL)]) { $1 })
    }

    func status(_ job: VOPIJob) -> SandboxJSON { .object(common(job)) }

    /// What is unset reads `{}` or `""`, never null.
    ///
    /// - Parameter origin: In front of the keys of objects.
    func full(_ job: VOPIJob, origin: String) -> SandboxJSON {
        .object(
            common(job).merging([
                "videoUrl": .string(job.videoURL), "config": config(job), "error": .string(job.error ?? ""),
                "result": generation == .bearer ? result(job, origin: origin) : .empty, "startedAt": "",
                "completedAt": .string(job.completed?.rfc3339 ?? ""),
            ]) { $1 })
    }

    private func common(_ job: VOPIJob) -> [String: SandboxJSON] {
        [
            "id": .string(job.id), "status": .string(job.status(progress)), "progress": progress(job),
            "createdAt": .string(job.created.rfc3339), "updatedAt": .string(job.updated.rfc3339),
        ]
    }

    private func config(_ job: VOPIJob) -> SandboxJSON { generation == .bearer ? job.config : .empty }

    private func progress(_ job: VOPIJob) -> SandboxJSON {
        guard progress == .full, job.step != .waiting else { return .empty }
        return [
            "step": .string(job.step.rawValue), "percentage": .number(Double(job.step.percentage)),
            "message": .string("The sandbox is at \(job.step.rawValue)."),
            "totalSteps": .number(Double(VOPIJob.Step.allCases.count - 1)),
            "currentStep": .number(Double(VOPIJob.Step.allCases.firstIndex(of: job.step) ?? 0)),
        ]
    }

    private func result(_ job: VOPIJob, origin: String) -> SandboxJSON {
        guard job.completed != nil else { return .empty }
        let frames = job.frames.map { SandboxJSON.string(origin + $0.object.key) }
        return [
            "variantsDiscovered": 1, "framesAnalyzed": .number(Double(frames.count)), "finalFrames": .array(frames),
            "commercialImages": job.images { .string(origin + $0.key) },
        ]
    }
}

extension VOPIJob {
    /// The frames, with their ids.
    var frames: [(id: String, object: StoredObject)] {
        pictures.compactMap { picture in
            if case .frame(let id) = picture.place { (id, picture.object) } else { nil }
        }
    }

    /// The images by key and version.
    func images(_ link: (StoredObject) -> SandboxJSON?) -> SandboxJSON {
        var keys: [String: [String: SandboxJSON]] = [:]
        for picture in pictures {
            guard case .image(let key, let version) = picture.place else { continue }
            // A key whose links are all left out stays, empty.
            keys[key, default: [:]][version] = link(picture.object)
        }
        return .object(keys.mapValues(SandboxJSON.object))
    }
}
