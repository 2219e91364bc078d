# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""recipes.py CI.MD CONTAINERFILE DIRECTORY [WORKFLOW...]: what the recipes have a shell do, as files in DIRECTORY.

github.sh, gitlab.sh and container.sh are what runs in a row; each step of each workflow, and each RUN of the recipe
with a container file, is a file of its own, NAME-N.sh. Fails where a recipe does not have the form of its kind."""
import re
import sys

import yaml


def blocks(path, language):
    return re.findall(r"^```" + language + r"\n(.*?)^```$", open(path).read(), re.M | re.S)


def write(name, lines):
    with open(f"{directory}/{name}", "w") as out:
        out.write("\n".join(lines) + "\n")


def steps(workflow, where):
    found = []
    # YAML 1.1 reads the key "on" as a truth value.
    assert True in workflow or "on" in workflow, f"{where}: when does it run?"
    for name, job in workflow["jobs"].items():
        assert "runs-on" in job, f"{where}: job {name} has no machine"
        for other in [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", []):
            assert other in workflow["jobs"], f"{where}: job {name} needs {other}, which is not there"
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), f"{where}: a step of {name} is one of run and uses: {step}"
            assert not set(step) - {"name", "run", "uses", "with", "env", "if"}, f"{where}: {step}"
            if "run" in step:
                found.append(step["run"])
    return found


def runs(text):
    instructions = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line and line[0] != "#"]
    for line in instructions:
        assert line.split()[0] in "FROM ARG COPY RUN WORKDIR ENV ENTRYPOINT CMD".split(), f"no instruction: {line}"
    assert instructions[0].startswith("FROM ")
    return instructions


ci, containerfile, directory, *workflows = sys.argv[1:]
github, gitlab = [yaml.safe_load(text) for text in blocks(ci, "yaml")]
github_steps = steps(github, "the recipe for GitHub")
# What a reader has to set has a place in the recipe.
named = set(re.findall(r"\bVERBS_[A-Z]+", "\n".join(github_steps)))
assert named and named == set(github.get("env", {})), f"GitHub's recipe uses {named}, and has in env {github.get('env')}"
# GitHub gives each step a shell of its own, in the directory of the project.
write("github.sh", [f"(\n{step}\n)" for step in github_steps])
job = gitlab["test"]
write("gitlab.sh", job["before_script"] + job["script"])
assert all(isinstance(line, str) for line in job["before_script"] + job["script"]), "a line of GitLab's is no text"
for path in workflows:
    for n, text in enumerate(steps(yaml.safe_load(open(path)), path)):
        write(f"workflow-{n}.sh", [re.sub(r"\$\{\{.*?\}\}", "text", text)])
(derived,) = blocks(ci, "dockerfile")
for n, line in enumerate(runs(derived)):
    if line.startswith("RUN "):
        write(f"derived-{n}.sh", [line[4:]])
script = []
for line in runs(open(containerfile).read()):
    word, rest = line.split(None, 1)
    # The second image has none of the first one's tools: the test stops there.
    if word == "FROM" and script:
        break
    if word == "RUN":
        script.append(rest)
    elif word == "WORKDIR":
        script.append("cd " + rest)
write("container.sh", script)
