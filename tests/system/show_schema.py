# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What `softhca show --json` prints, held against its schema. Keeps nothing; says what is wrong, and fails then.

show_schema.py SCHEMA described
    Each key has a description, each number with a unit, and no object may have keys without.
show_schema.py SCHEMA valid KIND FILE...
    The files are of that kind (instance, instances, waits).
show_schema.py SCHEMA strict KIND FILE
    The file is refused with a key more, and with a required one less, in any of its objects.
show_schema.py SCHEMA seen UNSEEN KIND FILE [KIND FILE]...
    Each key of the schema is in one of the files, but for those that UNSEEN lists, one with its reason in each line.

Several questions, with -- between them, save starts of Python.
"""
import json
import sys

import jsonschema

schema = json.load(open(sys.argv[1], encoding='utf-8'))
bad = []


def resolved(node):
    if '$ref' in node:
        return {**schema['$defs'][node['$ref'].rsplit('/', 1)[1]], **node}
    return node


def keys(node, path):
    """Each key below a node, by its path (hosts[].hcas[].qps[].qpn), with what the schema says of it."""
    node = resolved(node)
    if 'items' in node:
        yield from keys(node['items'], path + '[]')
    for name, value in node.get('properties', {}).items():
        yield path + '.' + name, resolved(value)
        yield from keys(value, path + '.' + name)


def objects(node, path):
    node = resolved(node)
    if 'items' in node:
        yield from objects(node['items'], path + '[]')
    if 'properties' in node:
        yield path, node
        for name, value in node['properties'].items():
            yield from objects(value, path + '.' + name)


def kinds():
    return [ref['$ref'].rsplit('/', 1)[1] for ref in schema['oneOf']]


def found(value, path):
    if isinstance(value, list):
        for item in value:
            yield from found(item, path + '[]')
    elif isinstance(value, dict):
        for name, item in value.items():
            yield path + '.' + name
            yield from found(item, path + '.' + name)


def validator(kind):
    return jsonschema.Draft202012Validator({'$ref': '#/$defs/' + kind, '$defs': schema['$defs']})


def is_number(node):
    kinds_of = node.get('type', [])
    return 'integer' in kinds_of or kinds_of == 'integer' or any(
        isinstance(value, int) for value in node.get('enum', []) + [node.get('const')])


def described():
    for kind in kinds():
        for path, node in objects(schema['$defs'][kind], kind):
            if node.get('additionalProperties') is not False:
                bad.append(f'{path}: may have keys that are not described')
        for path, node in keys(schema['$defs'][kind], kind):
            description = node.get('description', '')
            if len(description) < 3 or not description.endswith('.'):
                bad.append(f'{path}: no description')
            if is_number(node) and ' Unit: ' not in description:
                bad.append(f'{path}: no unit')


def valid(kind, files):
    # And for a program that does not know which of the three it has.
    checks = validator(kind), jsonschema.Draft202012Validator(schema)
    for file in files:
        value = json.load(open(file, encoding='utf-8'))
        for error in (error for check in checks for error in check.iter_errors(value)):
            bad.append(f'{file}: {error.json_path}: {error.message}')


def every_object(value):
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from every_object(item)


def shape(value):
    if isinstance(value, dict):
        return tuple((name, shape(item)) for name, item in value.items())
    return frozenset(map(shape, value)) if isinstance(value, list) else None


def thinned(value):
    """The same with one item of each shape in each list: the more items, the longer it takes to check one more key."""
    if isinstance(value, dict):
        return {name: thinned(item) for name, item in value.items()}
    return [thinned(item) for item in {shape(item): item for item in value}.values()] if isinstance(value, list) else value


def strict(kind, file):
    value = thinned(json.load(open(file, encoding='utf-8')))
    if not validator(kind).is_valid(value):
        bad.append('the schema refuses what it is to refuse with another key')
    check = validator(kind)
    done = set()
    for node in every_object(value):
        form = tuple(node)
        if not form or form in done:
            continue
        done.add(form)
        node['another'] = 1
        if check.is_valid(value):
            bad.append(f'{form}: another key is taken')
        del node['another']
    del value['version']
    if check.is_valid(value):
        bad.append('without a version it is taken')


def seen(unseen_file, pairs):
    have = set()
    for kind, file in zip(pairs[::2], pairs[1::2]):
        have |= set(found(json.load(open(file, encoding='utf-8')), kind))
    unseen = dict(line.split(None, 1) for line in open(unseen_file, encoding='utf-8') if line.strip())
    known = {path for kind in kinds() for path, _ in keys(schema['$defs'][kind], kind)}
    bad.extend(f'{path}: in the schema, and was not seen' for path in sorted(known - have - set(unseen)))
    bad.extend(f'{path}: has a reason for not being seen, and is not in the schema' for path in sorted(set(unseen) - known))
    print(len(known & have), 'keys seen,', len(known), 'in the schema')


def ask(what, *arguments):
    if what == 'described':
        described()
    elif what == 'valid':
        valid(arguments[0], arguments[1:])
    elif what == 'strict':
        strict(*arguments)
    else:
        seen(arguments[0], arguments[1:])


jsonschema.Draft202012Validator.check_schema(schema)
questions = [[]]
for word in sys.argv[2:]:
    if word == '--':
        questions.append([])
    else:
        questions[-1].append(word)
for question in questions:
    before = len(bad)
    ask(*question)
    bad[before:] = [f'{" ".join(question)}: {line}' for line in bad[before:]]
print('\n'.join(bad))
sys.exit(bool(bad))
